// What the shader kernels of several families ask of their operands, and how they split their work. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "ops/shader.h"

namespace shunt {

// Empty, or why an input's elements cannot be read: those of 32 and 16 bits can.
[[nodiscard]] std::string plain_refusal(const OpCall& call, std::size_t input);
// Empty, or why rows of this operand, which the kernel writes, share 32-bit words.
[[nodiscard]] std::string whole_words_refusal(const OpCall& call, const Operand& written);

// Workgroups whose invocations write a word each: ops/words.glsl, ops/bits.glsl.
[[nodiscard]] std::uint64_t groups_for_words(const Operand& written);
// Workgroups that write whole rows: ops/row_groups.glsl.
[[nodiscard]] std::uint64_t groups_for_rows(const Operand& written);
// ShaderKernel::groups where each workgroup computes one row of the output.
[[nodiscard]] std::uint64_t group_for_each_row(const OpCall& call);

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
