#include "ops/attention/attention.h"

#include <fmt/format.h>

#include "ops/cuda_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) {
  const std::uint32_t head_dim = call.input(0).shape.columns();
  if (head_dim > kLargestGroupHead)
    return fmt::format("attention: heads of {} elements, and the CUDA kernel takes {}", head_dim, kLargestGroupHead);
  return floating_refusal(call, 0);
}

std::uint64_t blocks(const OpCall& call) { return call.input(0).shape.rows(); }

}  // namespace

extern const CudaKernel attention_cuda;
const CudaKernel attention_cuda{supports, blocks, nullptr};

}  // namespace shunt
