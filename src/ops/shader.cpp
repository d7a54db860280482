#include "ops/shader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace shunt {

#define SHUNT_SHADER(family)                            \
  extern const ShaderKernel family##_shader;            \
  extern const std::uint32_t family##_spirv[];          \
  extern const std::size_t family##_spirv_words;        \
  extern const std::string_view family##_glsl430;       \
  extern const std::string_view family##_essl310;       \
  extern const std::string_view family##_wgsl;          \
  extern const std::string_view family##_msl;           \
  extern const std::string_view family##_essl300;       \
  extern const std::string_view family##_essl300_first; \
  extern const std::string_view family##_essl300_points;
#include "shaders.def"
#undef SHUNT_SHADER

namespace {

// Kernels count bytes in 32 bits.
constexpr std::uint64_t kMaxOperandBytes = std::uint64_t{1} << 32U;

std::string operand_refusal(const OpCall& call, std::string_view name, const Operand& operand,
                            std::uint64_t largest_binding_bytes) {
  const std::uint64_t bytes = operand.span_bytes();
  const std::uint64_t most = std::min(largest_binding_bytes, kMaxOperandBytes - 1);
  if (bytes > most) return fmt::format("{}: {} has {} bytes, and {} can be bound", name_of(call.op), name, bytes, most);
  if (operand.layout != Layout::rows)
    return fmt::format("{}: {} is in layout {}, must be in layout rows", name_of(call.op), name,
                       name_of(operand.layout));
  return {};
}

}  // namespace

std::span<const Shader> shaders() {
#define SHUNT_SHADER(name)                            \
  Shader{.family = #name,                             \
         .kernel = &name##_shader,                    \
         .spirv = {name##_spirv, name##_spirv_words}, \
         .glsl430 = name##_glsl430,                   \
         .essl310 = name##_essl310,                   \
         .wgsl = name##_wgsl,                         \
         .msl = name##_msl,                           \
         .essl300 = name##_essl300,                   \
         .essl300_first = name##_essl300_first,       \
         .essl300_points = name##_essl300_points},
  static const std::vector<Shader> kShaders = {
#include "shaders.def"
  };
#undef SHUNT_SHADER
  return kShaders;
}

ShaderChoice choose_shader(const OpCall& call, std::uint64_t largest_binding_bytes) {
  const OpInfo& row = info_of(call.op);
  const auto shader = std::ranges::find(shaders(), row.family, &Shader::family);
  if (shader == shaders().end()) return {nullptr, fmt::format("{}: there is no shader for it", row.name)};
  if (call.inputs.size() + 1 > kMaxShaderOperands)
    return {nullptr,
            fmt::format("{}: {} operands, and shaders take {}", row.name, call.inputs.size() + 1, kMaxShaderOperands)};
  std::string refusal = operand_refusal(call, "the result", *call.output, largest_binding_bytes);
  for (std::size_t i = 0; i < call.inputs.size() && refusal.empty(); ++i)
    if (call.has_input(i)) refusal = operand_refusal(call, row.inputs[i], call.input(i), largest_binding_bytes);
  if (refusal.empty()) refusal = cpu_family(row.family).scalar->supports(call);  // what its arguments can describe
  if (refusal.empty()) refusal = shader->kernel->supports(call);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return {&*shader, {}};
}

std::vector<std::byte> call_block(const OpCall& call, std::span<const std::uint32_t> byte_offsets) {
  std::array<std::uint32_t, kMaxShaderOperands> offsets{};
  std::ranges::copy(byte_offsets, offsets.begin());
  alignas(16) std::array<std::byte, kMaxArgumentBytes> arguments{};
  cpu_family(info_of(call.op).family).scalar->write_arguments(call, arguments);
  std::vector<std::byte> block(kCallBlockBytes);
  std::memcpy(block.data(), offsets.data(), sizeof(offsets));
  std::memcpy(block.data() + sizeof(offsets), arguments.data(), arguments.size());
  return block;
}

bool binds_input(const OpCall& call, std::size_t input) {
  if (!call.has_input(input)) return false;
  return input != 0 || call.output->kind != TensorKind::state;
}

}  // namespace shunt
