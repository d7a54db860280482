#include <fmt/format.h>

#include <algorithm>

#include "ops/elementwise/elementwise.h"
#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

constexpr std::size_t kMostOperands = 4;

std::string supports(const OpCall& call) {
  if (call.inputs.size() > kMostOperands)
    return fmt::format("{}: the shader takes {} operands", name_of(call.op), kMostOperands);
  return {};
}

constexpr ShaderKernel kShaders[] = {
    {.supports = supports},
};

std::string fours_supports(const OpCall& call) {
  const Operand& result = *call.output;
  const auto is_alike = [&](const Operand* input) {
    return input != nullptr && input->dtype == DType::F32 && input->shape == result.shape && input->is_contiguous();
  };
  if (result.dtype == DType::F32 && result.shape.columns() % 4 == 0 && std::ranges::all_of(call.inputs, is_alike))
    return {};
  return fmt::format("{}: operands are not F32 and contiguous, in rows of a multiple of 4 elements", name_of(call.op));
}
std::uint64_t fours_blocks(const OpCall& call) {
  return blocks_for_elements(call.output->shape.elements(), 4 * kElementwiseFoursThreads);
}

constexpr CudaKernel kMoreCuda[] = {
    {.name = "elementwise_fours",
     .supports = fours_supports,
     .blocks = fours_blocks,
     .threads = threads_of_block<kElementwiseFoursThreads>,
     .rank = 1},
};

}  // namespace

extern const GpuKernels elementwise_gpu{.shaders = kShaders, .more_cuda = kMoreCuda};

}  // namespace shunt
