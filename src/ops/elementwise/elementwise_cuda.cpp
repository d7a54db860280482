#include "ops/cuda_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) {
  std::string reason;
  for (std::size_t i = 0; i < call.inputs.size() && reason.empty(); ++i) reason = floating_refusal(call, i);
  return reason;
}

std::uint64_t blocks(const OpCall& call) { return blocks_for_elements(call.output->shape.elements()); }

}  // namespace

extern const CudaKernel elementwise_cuda;
const CudaKernel elementwise_cuda{supports, blocks, nullptr};

}  // namespace shunt
