// How a GLSL kernel runs one op: the interface that the Vulkan, OpenGL, WebGPU, Metal and WebGL2 backends share.
//
// A family folder may hold one or several kernels, each with any name x:
//   x.comp         one GLSL source for all of these APIs except WebGL2; ops/kernel.glsl says what it sees of a call
//   x.vulkan.comp  a kernel for Vulkan only, which may use features that only some devices have
//   x.frag or x.vert, x_first.frag  the same for WebGL2, which has no compute shaders (ops/texture.glsl)
//   FAMILY_gpu.cpp what the host knows about them, if the defaults of ShaderKernel do not fit (ops/gpu_kernels.h)
// The build compiles them to SPIR-V, translates that and embeds the results; without glslc it has no shaders.
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

// The limits and features of a device that kernels depend on.
struct ShaderLimits {
  ShaderLanguage language = ShaderLanguage::spirv;
  std::uint64_t largest_binding_bytes = ~std::uint64_t{0};
  std::uint32_t shared_bytes = 16384;   // per workgroup; every API guarantees this much
  std::uint32_t largest_group = 64;     // invocations per workgroup
  std::uint32_t smallest_subgroup = 0;  // invocations; 0: no subgroup operations
  bool has_f16 = false;                 // 16-bit arithmetic and buffers
  bool has_integer_dot = false;         // dot products of four 8-bit integers packed in a word
  bool has_cooperative_matrix = false;  // 16 x 16, F16 by F16 to F32
  bool on_cpu = false;                  // the driver computes on the CPU, where barriers are slow
};

// After this many iterations over all loops of an invocation, llvmpipe (Mesa's CPU driver) silently leaves each loop
// after one more (LP_MAX_TGSI_LOOP_ITERATIONS).
inline constexpr std::uint64_t kMostRoundsOnCpu = 65535;

// Values for a kernel's constants `layout(constant_id = i) const uint`, at most kSpecializationConstants of them.
// Kernels read them into variables first, because SPIR-V expressions of such constants do not translate to WGSL.
inline constexpr std::size_t kSpecializationConstants = 4;
using Specialization = std::array<std::uint32_t, kSpecializationConstants>;

// The defaults of ShaderKernel and CudaKernel. A kernel runs every call that the family's arguments describe, and each
// invocation writes one word or one element of the result.
[[nodiscard]] std::string no_refusal(const OpCall& call);
[[nodiscard]] std::uint64_t result_words(const OpCall& call);
[[nodiscard]] std::uint64_t result_elements(const OpCall& call);

struct ShaderKernel {
  std::string_view name;  // of its source; empty: the family's
  // Returns an empty string if this kernel can run the op, otherwise the reason why not.
  std::string (*supports)(const OpCall& call) = no_refusal;
  // REQUIRES (here and below): supports(call) is empty.
  // Returns the workgroups for the program's full capacity; kernels mask what a submission does not fill.
  std::uint64_t (*groups)(const OpCall& call) = result_words;
  // Returns numbers that the kernel reads as an additional input; null: none.
  std::vector<std::uint32_t> (*constants)(const OpCall& call) = nullptr;
  // Only without workgroups (WebGL2): returns how many words a first pass computes for the kernel to read at
  // kFirstPassBinding; null: no first pass.
  std::uint64_t (*first_pass_words)(const OpCall& call) = nullptr;
  // Returns the values of the kernel's specialization constants; null: it has none.
  Specialization (*specialization)(const OpCall& call) = nullptr;
  // Returns whether the device has what the kernel needs; null: every device has.
  bool (*runs_on)(const ShaderLimits& limits) = nullptr;
  // Among a family's kernels that can run a call, the one with the highest rank is chosen.
  int rank = 0;
  // Returns the most loop iterations of an invocation, over all its loops; for ESSL 300, of its fragment shader.
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
  std::string_view essl300;         // a fragment shader; each fragment writes one word of the result
  std::string_view essl300_first;   // the same for the words of a first pass; empty: none
  std::string_view essl300_points;  // or a vertex shader; each point writes a word of its choice

  [[nodiscard]] bool is_in(ShaderLanguage language) const;
};
// All shaders of this build, sorted by name.
[[nodiscard]] std::span<const Shader> shaders();
// Returns whether the build has shaders in this language: it has none without a tool that translates to it.
[[nodiscard]] bool has_shaders(ShaderLanguage language);

// A shader with the values of its constants: what a pipeline is made from.
struct SpecializedShader {
  const Shader* shader = nullptr;
  Specialization values{};
  std::shared_ptr<const void> keeps;  // owns a caller's kernel while a pipeline of it exists; null for shaders()
  auto operator<=>(const SpecializedShader&) const = default;
};
// Returns a shader's source for OpenGL: `text` with `values` in place of the constants' defaults.
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
// The uniform block at kCallBinding holds the operands' byte offsets, then the family's arguments.
inline constexpr std::size_t kCallBlockBytes = kMaxShaderOperands * sizeof(std::uint32_t) + kMaxArgumentBytes;

// The kernel that runs a call, or why there is none.
struct ShaderChoice {
  const Shader* shader = nullptr;
  std::string refusal;
};
// Chooses the kernel for a call on a device with these limits.
[[nodiscard]] ShaderChoice choose_shader(const OpCall& call, const ShaderLimits& limits,
                                         std::span<const Shader> among = shaders());
[[nodiscard]] SpecializedShader specialize(const Shader& shader, const OpCall& call);

// Returns the content of the uniform block at kCallBinding. `byte_offsets` gives the offset of the output, then of
// each input, in its binding: a multiple of the element size. REQUIRES: choose_shader() found a shader.
[[nodiscard]] std::vector<std::byte> call_block(const OpCall& call, std::span<const std::uint32_t> byte_offsets);

// Returns whether this input has a binding of its own. State that an op changes in place is bound as its output.
[[nodiscard]] bool binds_input(const OpCall& call, std::size_t input);

}  // namespace shunt
