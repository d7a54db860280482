#include "ops/cuda_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return floating_refusal(call, 0); }

std::uint64_t blocks(const OpCall& call) { return call.input(0).shape.rows(); }

}  // namespace

extern const CudaKernel attention_cuda;
const CudaKernel attention_cuda{supports, blocks, nullptr};

}  // namespace shunt
