// A kernel of the caller's, checked, and what the CPU and shaders need to run a use of it: the family of the op custom.
//
// A UserKernel is constant once made; any thread. Who keeps pointers into it keeps it by its shared pointer.
#pragma once

#include "ops/shader.h"
#include "ops/spirv.h"
#include "shunt/kernel.h"

namespace shunt {

// What call_block() writes behind the offsets of operands, and the prelude of kernels (custom_prelude.cpp) reads.
struct alignas(16) CustomArgs {
  std::uint32_t extents[kMaxShaderOperands][4];  // of the result, then of each input, from axis 0 on; 1 on missing axes
  std::uint32_t items;                           // of all that the program is prepared for
  std::uint32_t extent;                          // the number of an Extent: what counts the valid entries of the result
  std::uint32_t entries;                         // of axis 0 of the result, a divisor of items
  std::uint32_t reserved;
  std::byte arguments[kMaxKernelArgumentBytes];
};
static_assert(sizeof(CustomArgs) == kMaxArgumentBytes);

// The items of which a submission has data.
[[nodiscard]] std::uint64_t valid_items(const CustomArgs& args, const Parameters& parameters);

class UserKernel {
 public:
  // REQUIRES: check_kernel() and, of the words if there are any, check_spirv().
  UserKernel(KernelDescription description, const SpirvNeeds& needs);
  UserKernel(const UserKernel&) = delete;
  UserKernel& operator=(const UserKernel&) = delete;

  [[nodiscard]] const KernelDescription& description() const { return description_; }
  [[nodiscard]] const SpirvNeeds& needs() const { return needs_; }
  // What runs it; without SPIR-V in no language.
  [[nodiscard]] const Shader& shader() const { return shader_; }
  // Empty, or why a device with these limits can run no use of it.
  [[nodiscard]] std::string device_refusal(const ShaderLimits& limits) const;

  // Of a use. REQUIRES: the shape rule took it.
  [[nodiscard]] std::uint64_t items(const KernelUse& use, const Operand& result) const;
  [[nodiscard]] std::uint64_t groups(const KernelUse& use, const Operand& result) const;
  [[nodiscard]] double flops(const OpCall& call) const;

 private:
  KernelDescription description_;  // with the words that it was compiled to in the place of GLSL
  SpirvNeeds needs_;
  Shader shader_;
};

// REQUIRES: a call of custom that infer() took.
[[nodiscard]] const UserKernel& kernel_of(const OpCall& call);

// Errors: invalid for a description that no kernel can be made of.
[[nodiscard]] Status check_kernel(const KernelDescription& description);

}  // namespace shunt
