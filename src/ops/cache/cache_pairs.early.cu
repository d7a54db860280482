// F32 heads for rotary, cache_write and rotary_cache_write, by one kernel so that they share a launch. A thread takes
// one pair of a few heads of a token, and rotates all by the same angle. Pairs that are not rotated are neighbours. A
// block of Q8_0 is that of 16 threads with neighbours, or of the 32 of a warp.
#include "ops/cache/cache_args.h"
#include "ops/cache/cached_block.cuh"
#include "ops/early.cuh"
#include "ops/rotary/rotary.cuh"

namespace shunt {
namespace {

// The inputs that say where tokens are, and how their pairs turn.
constexpr std::uint32_t kPlaces = 1U << 2U | 1U << 3U | 1U << 4U;
constexpr std::uint32_t kRotaryPlaces = 1U << 1U | 1U << 2U;

struct FreshNumbers {
  const std::int32_t* numbers;
  SHUNT_FUNCTION std::int32_t operator[](std::uint64_t i) const {
    return static_cast<std::int32_t>(fresh_word(numbers + i));
  }
};

// Returns where the token's heads begin in the result, in elements, or kNoSlot.
SHUNT_FUNCTION std::uint64_t place_of_token(const CudaCall* call, const CacheArgs& args, std::uint64_t token,
                                            std::int32_t position) {
  const std::uint64_t token_elements = std::uint64_t{args.rotary.x.extents[2]} * args.rotary.x.extents[3];
  if (args.writes_state == 0) return token * token_elements;
  const std::int32_t sequence = FreshNumbers{input_of<std::int32_t>(call, 3)}[token * args.table.sequence_stride];
  const std::uint64_t slot = state_slot(args.table, FreshNumbers{input_of<std::int32_t>(call, 4)}, sequence, position);
  return slot == kNoSlot ? kNoSlot : slot * token_elements;
}

// Stores a pair of the head that begins at element `head` of the state. REQUIRES: the warp calls it, for pairs of one
// head that are all neighbours or all not.
SHUNT_FUNCTION void store_in_blocks(void* state, std::uint64_t head, const RotaryPair& pair, float first,
                                    float second) {
  const bool are_neighbours = pair.first + 1U == pair.second;
  float of_first = kernel_math::abs(first);
  float of_second = kernel_math::abs(second);
  if (are_neighbours) of_first = of_second = kernel_math::max(of_first, of_second);
  const std::uint32_t steps = are_neighbours ? 4 : 5;
  store_in_block(state, head + pair.first, first, largest_of_neighbours(of_first, steps));
  store_in_block(state, head + pair.second, second, largest_of_neighbours(of_second, steps));
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(cache_pairs, shunt::kRotaryThreads, 4) {
  using namespace shunt;
  const CallOfBlock of = call_of(call, launch_copies, launch_shares);
  const auto& args = arguments_of<CacheArgs>(of.call);
  const RotaryArgs& rotary = args.rotary;
  const std::uint32_t columns = rotary.x.extents[3];
  const std::uint32_t heads = rotary.x.extents[2];
  const std::uint64_t index = std::uint64_t{of.block} * kRotaryThreads + lane();
  const std::uint64_t item = index / (columns / 2U);
  const auto number = static_cast<std::uint32_t>(index % (columns / 2U));
  const std::uint64_t token = item / rotary_head_groups(rotary);
  const auto first_head = static_cast<std::uint32_t>(item % rotary_head_groups(rotary)) * kRotaryHeads;
  const bool rotates = args.rotates != 0 && number < rotary.dims / 2U;
  const RotaryPair pair = rotates ? rotary_pair(rotary, number) : RotaryPair{2U * number, 2U * number + 1U};
  let_next_kernel_begin();
  wait_to_read(of.call, args.writes_state != 0 ? kPlaces : kRotaryPlaces);
  if (token * heads >= valid_row_count(rotary.x, parameters_of(of.call))) return wait_for_earlier_kernels();
  const auto* const positions = input_of<std::int32_t>(of.call, args.x_input + 1U);
  const std::int32_t position = FreshNumbers{positions}[token * args.table.position_stride];
  const std::uint64_t place = place_of_token(of.call, args, token, position);
  if (place == kNoSlot) return wait_for_earlier_kernels();
  Rotation by{1.0F, 0.0F};
  if (rotates)
    by = rotation_of_pair(rotary, number, position, reinterpret_cast<const std::uint32_t*>(of.call->constants),
                          rotary.has_factors != 0 ? input_of<float>(of.call, args.x_input + 2U) : nullptr);
  const float* const x = input_of<float>(of.call, args.x_input) + row_offset(rotary.x, token * heads);
  const std::uint64_t head_stride = rotary.x.strides[2];
  const std::uint64_t first_column = std::uint64_t{pair.first} * rotary.x.strides[3];
  const std::uint64_t second_column = std::uint64_t{pair.second} * rotary.x.strides[3];
  wait_for_earlier_kernels();
  float first[kRotaryHeads];
  float second[kRotaryHeads];
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kRotaryHeads; ++i) {
    const std::uint32_t head = first_head + i < heads ? first_head + i : first_head;
    const float* const of_head = x + head * head_stride;
    first[i] = fresh_float(of_head + first_column);
    second[i] = fresh_float(of_head + second_column);
  }
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kRotaryHeads; ++i) {
    if (first_head + i >= heads) break;
    const std::uint64_t of_head = place + std::uint64_t{first_head + i} * columns;
    const float turned_first = rotates ? first[i] * by.cosine - second[i] * by.sine : first[i];
    const float turned_second = rotates ? first[i] * by.sine + second[i] * by.cosine : second[i];
    if (args.state_dtype == dtype::Q8_0) {
      store_in_blocks(output_of<void>(of.call), of_head, pair, turned_first, turned_second);
      continue;
    }
    store(args.state_dtype, output_of<void>(of.call), of_head + pair.first, turned_first);
    store(args.state_dtype, output_of<void>(of.call), of_head + pair.second, turned_second);
  }
}
