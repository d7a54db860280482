#include <fmt/format.h>

#include "ops/gpu_kernels.h"
#include "ops/quantize/quantize.h"

namespace shunt {
namespace {

// Shaders are specialized for the dtype of x.
Specialization specialization(const OpCall& call) { return {static_cast<std::uint32_t>(call.input(0).dtype)}; }

// One kernel writes floats, the other blocks of Q8_0, the only quantized dtype whose scale needs no search.
std::string refusal_but_for(const OpCall& call, bool is_it) {
  if (is_it) return {};
  return fmt::format("{}: shaders do not search for the scales of {}", name_of(call.op), name_of(call.output->dtype));
}
std::string decodes(const OpCall& call) {
  return refusal_but_for(call, info_of(call.output->dtype).kind == DTypeKind::floating);
}
std::string encodes(const OpCall& call) { return refusal_but_for(call, call.output->dtype == DType::Q8_0); }

std::uint64_t pairs_of_blocks(const OpCall& call) {
  return (call.output->shape.elements() + kShaderGroupSize - 1) / kShaderGroupSize;
}

std::uint64_t blocks(const OpCall& call) {
  const DTypeInfo& to = info_of(call.output->dtype);
  const std::uint64_t elements = call.output->shape.elements();
  if (to.kind == DTypeKind::floating) return blocks_for_elements(elements);
  const std::uint64_t tile = quantize_tile(to.block_elements);
  return (elements + tile - 1) / tile;
}

constexpr ShaderKernel kShaders[] = {
    {.name = "dequantize", .supports = decodes, .specialization = specialization},
    {.supports = encodes, .groups = pairs_of_blocks, .specialization = specialization},
};

}  // namespace

extern const GpuKernels quantize_gpu{.shaders = kShaders, .cuda = {.blocks = blocks}};

}  // namespace shunt
