// How a kernel in the shading language runs one op: what the backends of Vulkan, OpenGL, WebGPU, Metal and WebGL2
// share.
//
// A family folder `x/` may hold
//   x.comp        one GLSL source for all of these APIs; ops/kernel.glsl says what it sees of a call
//   x_shader.cpp  `const ShaderKernel x_shader`: what the source can run and how many workgroups that takes
//   x.frag or x.vert, x_first.frag  the same for WebGL2, which has no compute shaders: ops/texture.glsl says how
// The build compiles them to SPIR-V, translates that and embeds all of it. A build without glslc has no shaders at
// all; one without a translator has empty texts of its languages.
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/kernel.h"

namespace shunt {

struct ShaderKernel {
  // Empty: yes. Otherwise the reason why this kernel cannot run the op.
  std::string (*supports)(const OpCall& call);
  // REQUIRES (here and below): supports(call) is empty.
  // Workgroups for all that the program is prepared for; kernels mask what a submission does not fill.
  std::uint64_t (*groups)(const OpCall& call);
  // Numbers that the kernel reads as one more input; null: none.
  std::vector<std::uint32_t> (*constants)(const OpCall& call);
  // Where there are no workgroups: words that a first pass computes, which the kernel reads at kFirstPassBinding; null:
  // it has none.
  std::uint64_t (*first_pass_words)(const OpCall& call) = nullptr;
};

// One family's kernel and its compiled source.
struct Shader {
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
};
// All that this build has, in the order of their names.
[[nodiscard]] std::span<const Shader> shaders();

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

// The kernel that runs the call, or why there is none.
struct ShaderChoice {
  const Shader* shader = nullptr;
  std::string refusal;
};
// `largest_binding_bytes` is the device's.
[[nodiscard]] ShaderChoice choose_shader(const OpCall& call, std::uint64_t largest_binding_bytes);

// The content of the uniform block at kCallBinding. `byte_offsets`: of the output, then of each input, from the start
// of what is bound; multiples of the size of an element. REQUIRES: choose_shader() found a shader.
[[nodiscard]] std::vector<std::byte> call_block(const OpCall& call, std::span<const std::uint32_t> byte_offsets);

// Whether the kernel reads this input through a binding of its own. State that an op changes in place is its output.
[[nodiscard]] bool binds_input(const OpCall& call, std::size_t input);

}  // namespace shunt
