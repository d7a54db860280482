#include <fmt/format.h>

#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

// The most pairs of columns that a shader compares for one row: about a second's work. Drivers abort longer kernels.
constexpr std::uint64_t kMostPairs = std::uint64_t{1} << 28U;

std::string supports(const OpCall& call) {
  const std::uint64_t columns = call.input(0).shape.columns();
  if (columns * columns <= kMostPairs) return {};
  return fmt::format("argsort: {} columns, and the shader compares no more than {} pairs of a row", columns,
                     kMostPairs);
}

std::uint64_t groups(const OpCall& call) {
  return call.input(0).shape.rows() * rounds_over(call.input(0).shape.columns());
}

// Each column is compared with all others, four per round of the outer loop.
std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const std::uint64_t columns = call.input(0).shape.columns();
  return limits.language == ShaderLanguage::essl300 ? rounds_of_place_search(columns) : (columns / 4 + 1) * 5;
}

constexpr ShaderKernel kShaders[] = {{.supports = supports, .groups = groups, .rounds = rounds}};

}  // namespace

extern const GpuKernels argsort_gpu{.shaders = kShaders, .cuda = {.blocks = one_per_input_row}};

}  // namespace shunt
