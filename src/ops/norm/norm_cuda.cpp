#include "ops/cuda_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) {
  std::string reason = floating_refusal(call, 0);
  if (reason.empty() && call.has_input(1)) reason = floating_refusal(call, 1);
  return reason;
}

std::uint64_t blocks(const OpCall& call) { return call.output->shape.rows(); }

}  // namespace

extern const CudaKernel norm_cuda;
const CudaKernel norm_cuda{supports, blocks, nullptr};

}  // namespace shunt
