// The family of the op custom: a caller's kernel, checked, and what the CPU and shaders need to run a use of it.
//
// A UserKernel is constant once made; any thread may use it. Whoever keeps pointers into it must keep its shared
// pointer.
#pragma once

#include "ops/shader.h"
#include "ops/spirv.h"
#include "shunt/kernel.h"

namespace shunt {

// Written by call_block() after the operands' offsets and read by the kernels' prelude (custom_prelude.cpp).
struct alignas(16) CustomArgs {
  std::uint32_t extents[kMaxShaderOperands][4];  // of the result, then of each input, from axis 0 on; 1 on missing axes
  std::uint32_t items;                           // all that the program is prepared for
  std::uint32_t extent;                          // value of an Extent: what counts the valid entries of the result
  std::uint32_t entries;                         // extent of axis 0 of the result, a divisor of items
  std::uint32_t reserved;
  std::byte arguments[kMaxKernelArgumentBytes];
};
static_assert(sizeof(CustomArgs) == kMaxArgumentBytes);

// Returns the number of items for which a submission has data.
[[nodiscard]] std::uint64_t valid_items(const CustomArgs& args, const Parameters& parameters);

class UserKernel {
 public:
  // REQUIRES: the description passed check_kernel() and its words, if any, passed check_spirv().
  UserKernel(KernelDescription description, const SpirvNeeds& needs);
  UserKernel(const UserKernel&) = delete;
  UserKernel& operator=(const UserKernel&) = delete;

  [[nodiscard]] const KernelDescription& description() const { return description_; }
  [[nodiscard]] const SpirvNeeds& needs() const { return needs_; }
  // Returns the shader. Without SPIR-V it is in no language.
  [[nodiscard]] const Shader& shader() const { return shader_; }
  // Returns why a device with these limits cannot run any use of the kernel, or an empty string.
  [[nodiscard]] std::string device_refusal(const ShaderLimits& limits) const;

  // Properties of a use. REQUIRES: the shape rule accepted it.
  [[nodiscard]] std::uint64_t items(const KernelUse& use, const Operand& result) const;
  [[nodiscard]] std::uint64_t groups(const KernelUse& use, const Operand& result) const;
  [[nodiscard]] double flops(const OpCall& call) const;

 private:
  KernelDescription description_;  // GLSL is replaced by the words it was compiled to
  SpirvNeeds needs_;
  Shader shader_;
};

// REQUIRES: a call of custom that infer() accepted.
[[nodiscard]] const UserKernel& kernel_of(const OpCall& call);

// Errors: invalid if no kernel can be made from the description.
[[nodiscard]] Status check_kernel(const KernelDescription& description);

}  // namespace shunt
