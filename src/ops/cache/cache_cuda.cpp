#include "ops/cache/cache.h"

#include "ops/cuda_work.h"
#include "ops/rotary/turns.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return floating_refusal(call, 1); }

std::uint64_t blocks(const OpCall& call) { return blocks_for_elements(call.input(1).shape.elements()); }

std::vector<std::uint32_t> constants(const OpCall& call) {
  const CacheArgs args = cache_arguments(call);
  return args.rotates != 0 ? fixed_point_turns(args.rotary) : std::vector<std::uint32_t>();
}

}  // namespace

extern const CudaKernel cache_cuda;
const CudaKernel cache_cuda{supports, blocks, constants};

}  // namespace shunt
