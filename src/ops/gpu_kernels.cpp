#include "ops/gpu_kernels.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt {

#define SHUNT_GPU_FAMILY(family) extern const GpuKernels family##_gpu;
#include "families.def"

namespace {

constexpr GpuKernels kDefaults;

std::uint32_t elements_per_word(DType dtype) {
  const std::uint32_t bytes = info_of(dtype).block_bytes;
  return bytes < 4 ? 4 / bytes : 1;
}

}  // namespace

std::string no_refusal(const OpCall&) { return {}; }
std::uint32_t small_blocks(const OpCall&) { return kCudaGroupSize; }
std::string dtype_of_weight(const OpCall& call) { return std::string(name_of(call.input(kCudaWeight).dtype)); }
std::uint64_t result_words(const OpCall& call) { return groups_for_words(*call.output); }
std::uint64_t result_elements(const OpCall& call) { return blocks_for_elements(call.output->shape.elements()); }

const GpuKernels& gpu_kernels(std::string_view family) {
#define SHUNT_GPU_FAMILY(name) \
  if (family == #name) return name##_gpu;
#include "families.def"
  return kDefaults;
}

const ShaderKernel& shader_kernel(std::string_view family, std::string_view name) {
  static constexpr ShaderKernel kDefault;
  for (const ShaderKernel& kernel : gpu_kernels(family).shaders)
    if ((kernel.name.empty() ? family : kernel.name) == name) return kernel;
  return kDefault;
}

std::string whole_words_refusal(const OpCall& call, const Operand& written) {
  if (written.shape.columns() % elements_per_word(written.dtype) == 0) return {};
  return fmt::format("{}: the shader cannot write rows of {} elements of {}", name_of(call.op), written.shape.columns(),
                     name_of(written.dtype));
}

std::string blocks_refusal(const OpCall& call, const Operand& cache) {
  if (info_of(cache.dtype).kind != DTypeKind::quantized) return {};
  return fmt::format("{}: the shader knows no caches of {}", name_of(call.op), name_of(cache.dtype));
}

std::uint64_t groups_for_words(const Operand& written) {
  const std::uint32_t each = elements_per_word(written.dtype) * kShaderGroupSize;
  return (written.shape.elements() + each - 1) / each;
}

std::uint64_t blocks_for_elements(std::uint64_t elements, std::uint32_t of_block) {
  return (elements + of_block - 1) / of_block;
}

std::string for_strips(const OpCall&) { return "_strips"; }

std::uint64_t whole_rows(const OpCall& call) { return groups_for_rows(*call.output); }
std::uint64_t one_per_row(const OpCall& call) { return call.output->shape.rows(); }
std::uint64_t one_per_input_row(const OpCall& call) { return call.input(0).shape.rows(); }

std::uint64_t groups_for_rows(const Operand& written) {
  const std::uint64_t rows = written.shape.rows();
  return written.shape.columns() % elements_per_word(written.dtype) == 0 ? rows : (rows + 1) / 2;
}

std::uint64_t rounds_over(std::uint64_t columns) { return (columns + kShaderGroupSize - 1) / kShaderGroupSize; }

std::uint64_t rounds_over_rows(const Operand& written, std::uint32_t times) {
  constexpr std::uint64_t kStoring = 3;  // one for a word, and one for each of its elements
  const std::uint64_t columns = written.shape.columns();
  const std::uint64_t rows = columns % elements_per_word(written.dtype) == 0 ? 1 : 2;
  return rows * (1 + times * (rounds_over(columns) + kRoundsOfAGroup) + kStoring * rounds_over(columns));
}

}  // namespace shunt
