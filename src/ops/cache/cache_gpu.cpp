#include "ops/cache/cache.h"
#include "ops/gpu_kernels.h"
#include "ops/rotary/turns.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) {
  if (std::string refusal = blocks_refusal(call, call.input(0)); !refusal.empty()) return refusal;
  return whole_words_refusal(call, call.input(0));
}

std::uint64_t groups(const OpCall& call) {
  Operand written = call.input(1);
  written.dtype = call.input(0).dtype;
  return groups_for_words(written);
}

std::vector<std::uint32_t> constants(const OpCall& call) {
  const CacheArgs args = cache_arguments(call);
  return args.rotates != 0 ? fixed_point_turns(args.rotary) : std::vector<std::uint32_t>{0};
}

std::uint64_t blocks(const OpCall& call) { return blocks_for_elements(call.input(1).shape.elements()); }

std::vector<std::uint32_t> cuda_constants(const OpCall& call) {
  const CacheArgs args = cache_arguments(call);
  return args.rotates != 0 ? fixed_point_turns(args.rotary) : std::vector<std::uint32_t>();
}

// Blocks of a cache need the threads of a warp to have pairs of one head, which are all neighbours or all not.
std::string pairs_supports(const OpCall& call) {
  constexpr std::uint32_t kPairsOfWarp = 32;
  const CacheArgs args = cache_arguments(call);
  const StridedTensor& x = args.rotary.x;
  if (static_cast<DType>(x.dtype) != DType::F32 || x.extents[3] % 2 != 0)
    return "cache: x is not F32, or has heads of an odd number of elements";
  if (info_of(static_cast<DType>(args.state_dtype)).kind != DTypeKind::quantized) return {};
  const bool are_apart = args.rotates != 0 && args.rotary.halves != 0;
  if (x.extents[3] % (2 * kPairsOfWarp) != 0 || (are_apart && args.rotary.dims % (2 * kPairsOfWarp) != 0))
    return "cache: blocks are spread over warps";
  return {};
}
std::uint64_t pairs_blocks(const OpCall& call) { return rotary_pairs_blocks(cache_arguments(call).rotary); }

constexpr CudaKernel pairs_for(std::string_view family) {
  return {.name = "cache_pairs",
          .family = family,
          .supports = pairs_supports,
          .blocks = pairs_blocks,
          .threads = threads_of_block<kRotaryThreads>,
          .rank = 1,
          .constants = cuda_constants,
          .shares_launch = true};
}
constexpr CudaKernel kMoreCuda[] = {pairs_for("cache"), pairs_for("rotary")};

constexpr ShaderKernel kShaders[] = {
    {.supports = supports, .groups = groups, .constants = constants},
};

}  // namespace

extern const GpuKernels cache_gpu{
    .shaders = kShaders, .cuda = {.blocks = blocks, .constants = cuda_constants}, .more_cuda = kMoreCuda};

}  // namespace shunt
