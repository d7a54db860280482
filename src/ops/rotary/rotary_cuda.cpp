#include "ops/cuda_work.h"
#include "ops/rotary/rotary.h"
#include "ops/rotary/turns.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return floating_refusal(call, 0); }

std::uint64_t blocks(const OpCall& call) { return blocks_for_elements(call.output->shape.elements()); }

std::vector<std::uint32_t> constants(const OpCall& call) { return fixed_point_turns(rotary_arguments(call)); }

}  // namespace

extern const CudaKernel rotary_cuda;
const CudaKernel rotary_cuda{supports, blocks, constants};

}  // namespace shunt
