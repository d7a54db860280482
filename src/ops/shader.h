// How a kernel in the shading language runs one op: what the backends of Vulkan, OpenGL, WebGPU, Metal and WebGL2
// share.
//
// A family folder may hold kernels, one or several, of any name x:
//   x.comp         one GLSL source for all of these APIs; ops/kernel.glsl says what it sees of a call
//   x.vulkan.comp  or one for Vulkan alone, which may use what only some of its devices have
//   FAMILY_gpu.cpp what the host knows of them, where the defaults of ShaderKernel do not fit (ops/gpu_kernels.h)
//   x.frag or x.vert, x_first.frag  the same for WebGL2, which has no compute shaders: ops/texture.glsl says how
// The build compiles them to SPIR-V, translates that and embeds all of it; without glslc it has none.
// Plain values; any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/kernel.h"

namespace shunt {

enum class ShaderLanguage : std::uint8_t { spirv, glsl430, essl310, wgsl, msl, essl300 };

// What a device offers to kernels.
struct ShaderLimits {
  ShaderLanguage language = ShaderLanguage::spirv;
  std::uint64_t largest_binding_bytes = ~std::uint64_t{0};
  std::uint32_t shared_bytes = 16384;   // of a workgroup; what every API promises
  std::uint32_t largest_group = 64;     // invocations of a workgroup
  std::uint32_t smallest_subgroup = 0;  // invocations; 0: no subgroup operations
  bool has_f16 = false;                 // arithmetic with 16 bits, and buffers of them
  bool has_integer_dot = false;         // of four 8-bit integers in a word
  bool has_cooperative_matrix = false;  // of 16 x 16 F16 by F16 to F32
  bool on_cpu = false;                  // the driver computes on the CPU, where barriers cost much
};

// Rounds of all its loops after which llvmpipe, the CPU driver of Mesa, makes an invocation leave each loop after one
// more round, without an error (LP_MAX_TGSI_LOOP_ITERATIONS).
inline constexpr std::uint64_t kMostRoundsOnCpu = 65535;

// The values of a kernel's constants `layout(constant_id = i) const uint`, of which it may have as many. SPIR-V keeps
// no expression of them that WGSL could say, so kernels read them into variables first.
inline constexpr std::size_t kSpecializationConstants = 4;
using Specialization = std::array<std::uint32_t, kSpecializationConstants>;

// The defaults of kernels: they run every call that the family's arguments describe, and write the result a word or an
// element for each invocation.
[[nodiscard]] std::string no_refusal(const OpCall& call);
[[nodiscard]] std::uint64_t result_words(const OpCall& call);
[[nodiscard]] std::uint64_t result_elements(const OpCall& call);

struct ShaderKernel {
  std::string_view name;  // of its source; empty: the family's
  // Empty: yes. Otherwise the reason why this kernel cannot run the op.
  std::string (*supports)(const OpCall& call) = no_refusal;
  // REQUIRES (here and below): supports(call) is empty.
  // Workgroups for all that the program is prepared for; kernels mask what a submission does not fill.
  std::uint64_t (*groups)(const OpCall& call) = result_words;
  // Numbers that the kernel reads as one more input; null: none.
  std::vector<std::uint32_t> (*constants)(const OpCall& call) = nullptr;
  // Where there are no workgroups: words that a first pass computes, which the kernel reads at kFirstPassBinding; null:
  // it has none.
  std::uint64_t (*first_pass_words)(const OpCall& call) = nullptr;
  // What the kernel is compiled for; null: it has no such constants.
  Specialization (*specialization)(const OpCall& call) = nullptr;
  // Whether the device has what the kernel is made of; null: all have.
  bool (*runs_on)(const ShaderLimits& limits) = nullptr;
  // Among a family's kernels that can run a call, the one with the greatest does.
  int rank = 0;
  // Rounds of all loops that an invocation goes through at most; of a fragment shader where the language is ESSL 300.
  // Null: a few.
  std::uint64_t (*rounds)(const OpCall& call, const ShaderLimits& limits) = nullptr;
};

// A kernel and its compiled source.
struct Shader {
  std::string_view name;
  std::string_view family;
  const ShaderKernel* kernel;
  std::span<const std::uint32_t> spirv;
  std::string_view glsl430;
  std::string_view essl310;
  std::string_view wgsl;
  std::string_view msl;             // its entry point is kMslEntry
  std::string_view essl300;         // a fragment shader; each fragment writes a word of the result
  std::string_view essl300_first;   // the same for the words of a first pass; empty: none
  std::string_view essl300_points;  // or a vertex shader; each point writes a word where it likes

  [[nodiscard]] bool is_in(ShaderLanguage language) const;
};
// All that this build has, in the order of their names.
[[nodiscard]] std::span<const Shader> shaders();
// Whether there are any in this language: not without a tool that translates to it.
[[nodiscard]] bool has_shaders(ShaderLanguage language);

// What a pipeline is made of.
struct SpecializedShader {
  const Shader* shader = nullptr;
  Specialization values{};
  std::shared_ptr<const void> keeps;  // a caller's kernel while there is a pipeline of it; null for those of shaders()
  auto operator<=>(const SpecializedShader&) const = default;
};
// Its source in a language of OpenGL: `text` with the values in place of the constants' defaults.
[[nodiscard]] std::string specialized(std::string_view text, const Specialization& values);

inline constexpr const char* kMslEntry = "main0";  // MSL has no function main
inline constexpr std::uint32_t kShaderGroupSize = 64;
inline constexpr std::uint32_t kMaxShaderOperands = 8;  // the output, the inputs and the constants
// Bindings of a kernel: two uniform blocks, then storage buffers.
inline constexpr std::uint32_t kCallBinding = 0;
inline constexpr std::uint32_t kParametersBinding = 1;
inline constexpr std::uint32_t kOutputBinding = 2;
inline constexpr std::uint32_t kFirstInputBinding = 3;  // the constants follow the last input
inline constexpr std::uint32_t kShaderBindings = kOutputBinding + kMaxShaderOperands;
inline constexpr std::uint32_t kFirstPassBinding = kShaderBindings - 1;
// Of the uniform block at kCallBinding: the operands' byte offsets, then the family's arguments.
inline constexpr std::size_t kCallBlockBytes = kMaxShaderOperands * sizeof(std::uint32_t) + kMaxArgumentBytes;

// The kernel that runs a call, or why there is none.
struct ShaderChoice {
  const Shader* shader = nullptr;
  std::string refusal;
};
// `limits` are the device's.
[[nodiscard]] ShaderChoice choose_shader(const OpCall& call, const ShaderLimits& limits,
                                         std::span<const Shader> among = shaders());
[[nodiscard]] SpecializedShader specialize(const Shader& shader, const OpCall& call);

// The content of the uniform block at kCallBinding. `byte_offsets`: of the output, then of each input, from the start
// of what is bound; multiples of the size of an element. REQUIRES: choose_shader() found a shader.
[[nodiscard]] std::vector<std::byte> call_block(const OpCall& call, std::span<const std::uint32_t> byte_offsets);

// Whether the kernel reads this input through a binding of its own. State that an op changes in place is its output.
[[nodiscard]] bool binds_input(const OpCall& call, std::size_t input);

}  // namespace shunt
