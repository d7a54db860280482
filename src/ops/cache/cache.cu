// A thread writes one element of the state, which is the output. A block of Q8_0 is that of 32 neighbouring threads.
#include "ops/cache/cache_args.h"
#include "ops/cache/cached_block.cuh"
#include "ops/rotary/rotary.cuh"

SHUNT_KERNEL(cache) {
  using namespace shunt;
  const auto& args = arguments_of<CacheArgs>(call);
  const StridedTensor& x = args.rotary.x;
  const std::uint32_t head_dim = x.extents[3];
  const std::uint64_t heads = x.extents[2];
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / head_dim;  // a token and a head
  if (row >= valid_row_count(x, parameters_of(call))) return;
  const std::uint64_t token = row / heads;
  const std::int32_t position = input_of<std::int32_t>(call, 2)[token * args.table.position_stride];
  const std::int32_t sequence = input_of<std::int32_t>(call, 3)[token * args.table.sequence_stride];
  const std::uint64_t slot = state_slot(args.table, input_of<std::int32_t>(call, 4), sequence, position);
  if (slot == kNoSlot) return;
  const auto i = static_cast<std::uint32_t>(index % head_dim);
  const std::uint64_t begin = row_offset(x, row);
  const void* from = input_of<void>(call, 1);
  const float value = args.rotates != 0 ? rotated(args.rotary, from, begin, i, position,
                                                  reinterpret_cast<const std::uint32_t*>(call->constants), nullptr)
                                        : load(x.dtype, from, begin + std::uint64_t{i} * x.strides[3]);
  const std::uint64_t target = (slot * heads + row % heads) * head_dim + i;
  if (args.state_dtype != dtype::Q8_0) return store(args.state_dtype, output_of<void>(call), target, value);
  store_in_block(output_of<void>(call), target, value, largest_of_neighbours(kernel_math::abs(value), 5));
}
