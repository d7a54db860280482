#include <fmt/format.h>

#include "ops/cuda_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) {
  for (const DType dtype : {call.input(0).dtype, call.output->dtype})
    if (dtype == DType::I8 || dtype == DType::U32)
      return fmt::format("its kernel takes F32, F16, BF16 and I32, not {}", name_of(dtype));
  return {};
}

std::uint64_t blocks(const OpCall& call) { return blocks_for_elements(call.output->shape.elements()); }

}  // namespace

extern const CudaKernel copy_cuda;
const CudaKernel copy_cuda{supports, blocks, nullptr};

}  // namespace shunt
