#include "ops/shader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ranges>

#include "ops/custom/custom.h"
#include "ops/gpu_kernels.h"

namespace shunt {

#define SHUNT_SHADER(name, folder)                    \
  extern const std::uint32_t name##_spirv[];          \
  extern const std::size_t name##_spirv_words;        \
  extern const std::string_view name##_glsl430;       \
  extern const std::string_view name##_essl310;       \
  extern const std::string_view name##_wgsl;          \
  extern const std::string_view name##_msl;           \
  extern const std::string_view name##_essl300;       \
  extern const std::string_view name##_essl300_first; \
  extern const std::string_view name##_essl300_points;
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
  return {};
}

// Returns an empty string, or why no shader can run the call.
std::string call_refusal(const OpCall& call, std::uint64_t largest_binding_bytes) {
  const OpInfo& row = info_of(call.op);
  if (call.inputs.size() + 1 > kMaxShaderOperands)
    return fmt::format("{}: {} operands, and shaders take at most {}", row.name, call.inputs.size() + 1,
                       kMaxShaderOperands);
  std::string refusal = operand_refusal(call, "the result", *call.output, largest_binding_bytes);
  for (std::size_t i = 0; i < call.inputs.size() && refusal.empty(); ++i)
    if (call.has_input(i)) refusal = operand_refusal(call, row.inputs[i], call.input(i), largest_binding_bytes);
  // The arguments must be able to describe the call; those of custom ops always can.
  if (refusal.empty() && call.op != Op::custom) refusal = cpu_family(row.family).scalar->supports(call);
  return refusal;
}

// Returns an empty string, or why a driver would leave the kernel's loops early.
std::string rounds_refusal(const ShaderKernel& kernel, const OpCall& call, const ShaderLimits& limits) {
  if (!limits.on_cpu || kernel.rounds == nullptr) return {};
  const std::uint64_t rounds = kernel.rounds(call, limits);
  if (rounds <= kMostRoundsOnCpu) return {};
  return fmt::format("{}: its shader takes {} rounds of loops, and drivers on the CPU end loops after {}",
                     name_of(call.op), rounds, kMostRoundsOnCpu);
}

// A custom op has only one kernel: the caller's.
ShaderChoice choose_custom(const OpCall& call, const ShaderLimits& limits) {
  const UserKernel& kernel = kernel_of(call);
  std::string refusal = kernel.device_refusal(limits);
  if (refusal.empty()) refusal = call_refusal(call, limits.largest_binding_bytes);
  if (refusal.empty()) refusal = kernel.shader().kernel->supports(call);
  return {refusal.empty() ? &kernel.shader() : nullptr, std::move(refusal)};
}

}  // namespace

std::span<const Shader> shaders() {
#define SHUNT_SHADER(text, folder)                    \
  Shader{.name = #text,                               \
         .family = #folder,                           \
         .kernel = &shader_kernel(#folder, #text),    \
         .spirv = {text##_spirv, text##_spirv_words}, \
         .glsl430 = text##_glsl430,                   \
         .essl310 = text##_essl310,                   \
         .wgsl = text##_wgsl,                         \
         .msl = text##_msl,                           \
         .essl300 = text##_essl300,                   \
         .essl300_first = text##_essl300_first,       \
         .essl300_points = text##_essl300_points},
  static const std::vector<Shader> kShaders = {
#include "shaders.def"
  };
#undef SHUNT_SHADER
  return kShaders;
}

bool Shader::is_in(ShaderLanguage language) const {
  switch (language) {
    case ShaderLanguage::spirv:
      return !spirv.empty();
    case ShaderLanguage::glsl430:
      return !glsl430.empty();
    case ShaderLanguage::essl310:
      return !essl310.empty();
    case ShaderLanguage::wgsl:
      return !wgsl.empty();
    case ShaderLanguage::msl:
      return !msl.empty();
    case ShaderLanguage::essl300:
      return !essl300.empty() || !essl300_points.empty();
  }
  return false;
}

bool has_shaders(ShaderLanguage language) {
  return std::ranges::any_of(shaders(), [&](const Shader& shader) { return shader.is_in(language); });
}

std::string specialized(std::string_view text, const Specialization& values) {
  // The first line is the version. Macros after it override the default of each constant.
  const std::size_t second_line = std::min(text.find('\n'), text.size() - 1) + 1;
  std::string source(text.substr(0, second_line));
  for (std::size_t id = 0; id < values.size(); ++id)
    if (const std::string macro = fmt::format("SPIRV_CROSS_CONSTANT_ID_{}", id);
        text.find(macro) != std::string_view::npos)
      source += fmt::format("#define {} {}u\n", macro, values[id]);
  return source.append(text.substr(second_line));
}

ShaderChoice choose_shader(const OpCall& call, const ShaderLimits& limits, std::span<const Shader> among) {
  if (call.op == Op::custom) return choose_custom(call, limits);
  const OpInfo& row = info_of(call.op);
  const auto is_there = [&](const Shader& shader) {
    const auto runs_on = shader.kernel->runs_on;
    return shader.family == row.family && shader.is_in(limits.language) && (runs_on == nullptr || runs_on(limits));
  };
  if (std::ranges::none_of(among, is_there)) return {nullptr, fmt::format("{}: there is no shader for it", row.name)};
  std::string refusal = call_refusal(call, limits.largest_binding_bytes);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  ShaderChoice choice;
  int refused_rank = 0;
  for (const Shader& shader : among | std::views::filter(is_there)) {
    const int rank = shader.kernel->rank;
    if (choice.shader != nullptr && rank <= choice.shader->kernel->rank) continue;
    refusal = shader.kernel->supports(call);
    if (refusal.empty()) refusal = rounds_refusal(*shader.kernel, call, limits);
    if (refusal.empty()) {
      choice.shader = &shader;
    } else if (choice.refusal.empty() || rank < refused_rank) {  // the plainest kernel's reason is the most useful
      choice.refusal = std::move(refusal);
      refused_rank = rank;
    }
  }
  if (choice.shader != nullptr) choice.refusal.clear();
  return choice;
}

SpecializedShader specialize(const Shader& shader, const OpCall& call) {
  SpecializedShader specialized{.shader = &shader};
  if (shader.kernel->specialization != nullptr) specialized.values = shader.kernel->specialization(call);
  if (call.op == Op::custom) specialized.keeps = call.attributes->user_kernel(Attr::code);
  return specialized;
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
