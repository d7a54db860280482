// What the host knows of a family's GPU kernels: which calls they run, and with how many workgroups or blocks.
//
// A family folder `x/` may hold x_gpu.cpp with `const GpuKernels x_gpu`. It says what differs from the defaults of
// ShaderKernel and CudaKernel: kernels that run every call of the family's ops, and write the result word by word or
// element by element. A family without the file has these. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ops/cuda.h"
#include "ops/shader.h"

namespace shunt {

struct GpuKernels {
  std::span<const ShaderKernel> shaders;
  CudaKernel cuda;
};
[[nodiscard]] const GpuKernels& gpu_kernels(std::string_view family);
// What is said of the shader `name`, or the defaults.
[[nodiscard]] const ShaderKernel& shader_kernel(std::string_view family, std::string_view name);

// Empty, or why rows of this operand, which the kernel writes, share 32-bit words.
[[nodiscard]] std::string whole_words_refusal(const OpCall& call, const Operand& written);

// Workgroups whose invocations write a word each: ops/words.glsl, ops/bits.glsl.
[[nodiscard]] std::uint64_t groups_for_words(const Operand& written);
// Workgroups that write whole rows: ops/row_groups.glsl.
[[nodiscard]] std::uint64_t groups_for_rows(const Operand& written);
// Blocks whose threads write an element each.
[[nodiscard]] std::uint64_t blocks_for_elements(std::uint64_t elements);

// ShaderKernel::groups of whole rows of the result.
[[nodiscard]] std::uint64_t whole_rows(const OpCall& call);
// ShaderKernel::groups or CudaKernel::blocks: one for each row of the result, or of input 0.
[[nodiscard]] std::uint64_t one_per_row(const OpCall& call);
[[nodiscard]] std::uint64_t one_per_input_row(const OpCall& call);

// ShaderKernel::rounds, in each of which the invocations of a workgroup take one column each of `columns`.
[[nodiscard]] std::uint64_t rounds_over(std::uint64_t columns);
// The same of kernels whose workgroups compute one row or two (ops/row_groups.glsl), for which they go so many times
// over the columns of the input, of which `written` has as many.
[[nodiscard]] std::uint64_t rounds_over_rows(const Operand& written, std::uint32_t times);
// Rounds of a sum or a maximum over a workgroup, each half as wide as the one before.
inline constexpr std::uint64_t kRoundsOfAGroup = 6;

// What the workgroups of a kernel for Vulkan alone are made of.
struct GroupNeeds {
  std::uint32_t group = 0;  // invocations, which its fourth constant says
  std::uint32_t smallest_subgroup = 0;
  std::uint32_t shared_bytes = 0;
  bool on_cpu = true;  // also where the driver computes on the CPU
};
// ShaderKernel::runs_on of such a kernel.
template <GroupNeeds needs>
[[nodiscard]] bool offers(const ShaderLimits& limits) {
  return limits.largest_group >= needs.group && limits.smallest_subgroup >= needs.smallest_subgroup &&
         limits.shared_bytes >= needs.shared_bytes && (needs.on_cpu || !limits.on_cpu);
}

}  // namespace shunt
