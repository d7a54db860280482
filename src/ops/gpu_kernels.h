// The host's description of a family's GPU kernels: which calls they run, and with how many workgroups or blocks.
//
// A family folder `x/` may hold x_gpu.cpp with `const GpuKernels x_gpu`, which overrides the defaults of ShaderKernel
// and CudaKernel. By default, kernels run every call of the family's ops and write the result word by word or element
// by element. Pure functions; any thread.
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
  std::span<const CudaKernel> more_cuda = {};  // with names
};
[[nodiscard]] const GpuKernels& gpu_kernels(std::string_view family);
// Returns the entry for the shader `name`, or the defaults.
[[nodiscard]] const ShaderKernel& shader_kernel(std::string_view family, std::string_view name);

// Returns an empty string, or the refusal if rows of `written`, which the kernel writes, share 32-bit words.
[[nodiscard]] std::string whole_words_refusal(const OpCall& call, const Operand& written);

// The same if `cache` is in blocks, which only some kernels read and write.
[[nodiscard]] std::string blocks_refusal(const OpCall& call, const Operand& cache);

// The number of workgroups if each invocation writes one word (ops/words.glsl, ops/bits.glsl).
[[nodiscard]] std::uint64_t groups_for_words(const Operand& written);
// The number of workgroups that write whole rows (ops/row_groups.glsl).
[[nodiscard]] std::uint64_t groups_for_rows(const Operand& written);
// The number of blocks if each thread writes one element, or each block `of_block` elements.
[[nodiscard]] std::uint64_t blocks_for_elements(std::uint64_t elements, std::uint32_t of_block = kCudaGroupSize);
// CudaKernel::threads of kernels whose blocks are all alike.
template <std::uint32_t threads>
[[nodiscard]] std::uint32_t threads_of_block(const OpCall&) {
  return threads;
}

// CudaKernel::variant: "_strips", of a kernel that has a second form for weights in strips.
[[nodiscard]] std::string for_strips(const OpCall& call);

// ShaderKernel::groups for kernels that write whole rows of the result.
[[nodiscard]] std::uint64_t whole_rows(const OpCall& call);
// ShaderKernel::groups or CudaKernel::blocks: one for each row of the result, or of input 0.
[[nodiscard]] std::uint64_t one_per_row(const OpCall& call);
[[nodiscard]] std::uint64_t one_per_input_row(const OpCall& call);

// ShaderKernel::rounds of a loop in which each invocation of a workgroup takes one of `columns` per iteration.
[[nodiscard]] std::uint64_t rounds_over(std::uint64_t columns);
// The same for kernels whose workgroups compute one or two rows (ops/row_groups.glsl). They make `times` passes over
// the columns of the input, which has as many as `written`.
[[nodiscard]] std::uint64_t rounds_over_rows(const Operand& written, std::uint32_t times);
// The same for fragments that look for a place in a sorted row (ops/place_search.glsl): over its columns at most once
// for each four bits of a value, each time over 16 counts, and over the columns once more.
constexpr std::uint64_t rounds_of_place_search(std::uint64_t columns) { return 8 * (columns + 17) + columns; }
// Iterations of a sum or a maximum over a workgroup; each is half as wide as the one before.
inline constexpr std::uint64_t kRoundsOfAGroup = 6;

// The workgroup limits that a Vulkan-only kernel needs.
struct GroupNeeds {
  std::uint32_t group = 0;  // invocations per workgroup; the fourth constant gives it
  std::uint32_t smallest_subgroup = 0;
  std::uint32_t shared_bytes = 0;
  bool on_cpu = true;  // also runs if the driver computes on the CPU
};
// ShaderKernel::runs_on for such a kernel.
template <GroupNeeds needs>
[[nodiscard]] bool offers(const ShaderLimits& limits) {
  return limits.largest_group >= needs.group && limits.smallest_subgroup >= needs.smallest_subgroup &&
         limits.shared_bytes >= needs.shared_bytes && (needs.on_cpu || !limits.on_cpu);
}

}  // namespace shunt
