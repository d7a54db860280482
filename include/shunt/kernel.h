// A kernel of your own as an op of graphs: GLSL or SPIR-V for devices of Vulkan, a function for the processor, or both.
//
// make_kernel() compiles and checks it once, GraphBuilder::custom() adds uses of it to graphs, and each use runs
// wherever the planner finds it fastest, among the devices that have one of the two. Both must compute the same. Work
// is counted in items that do not depend on each other, by default one for each element of the result: in GLSL an
// invocation computes one, and the function is called from several threads at once for a stretch of them each. A
// UserKernel is constant and may be used by any thread; graphs, programs and devices keep it as long as they need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shunt/op.h"

namespace shunt {

inline constexpr std::size_t kMaxKernelInputs = 7;
inline constexpr std::size_t kMaxKernelArgumentBytes = 112;

// What a kernel is used on: contiguous inputs, and its arguments.
struct KernelUse {
  std::span<const Operand> inputs;
  std::span<const std::byte> arguments;  // KernelDescription::argument_bytes, aligned to 16

  template <class T>
  [[nodiscard]] const T& arguments_as() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxKernelArgumentBytes && alignof(T) <= 16);
    return *reinterpret_cast<const T*>(arguments.data());
  }
};

// What the function computes: items begin .. end - 1 of a use.
struct KernelWork {
  KernelUse use;
  Operand result;
  std::span<const std::byte* const> input_data;  // the first element of each input
  std::byte* result_data = nullptr;
  Parameters parameters;  // of this submission
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  // REQUIRES (here and below): T is what an element of that operand is stored as.
  template <class T>
  [[nodiscard]] std::span<const T> input(std::size_t index) const {
    return {reinterpret_cast<const T*>(input_data[index]),
            static_cast<std::size_t>(use.inputs[index].shape.elements())};
  }
  template <class T>
  [[nodiscard]] std::span<T> output() const {
    return {reinterpret_cast<T*>(result_data), static_cast<std::size_t>(result.shape.elements())};
  }
};

// None of the functions may throw; they are called from any thread.
struct KernelDescription {
  std::string name;  // of letters, digits and _; for messages, plans and traces. Several kernels may have the same.
  // At most one of the two: GLSL, compiled with libshaderc behind kernel_prelude(), or the words of a module of SPIR-V
  // up to 1.3 that was compiled behind it elsewhere.
  std::string glsl = {};
  std::vector<std::uint32_t> spirv = {};
  std::uint32_t inputs = 1;          // how many it takes
  std::uint32_t argument_bytes = 0;  // of a use; a struct whose numbers of 32 bits lie as std140 has them
  // The dtype and shape of the result, or why the kernel does not take this: required, and asked before anything else.
  std::function<Result<Operand>(const KernelUse& use)> result = nullptr;
  // Null: a use runs on no processor.
  std::function<Status(const KernelWork& work)> cpu = nullptr;
  // How many items a use has. Null: as many as the result has elements.
  std::function<std::uint64_t(const KernelUse& use, const Operand& result)> items = nullptr;
  // Workgroups of the GLSL. Null: as many as give each item an invocation.
  std::function<std::uint64_t(const KernelUse& use, const Operand& result)> groups = nullptr;
  double flops_per_item = 4;  // by which the planner predicts times
};

// Errors: invalid for a description that contradicts itself, for GLSL that does not compile (with the compiler's lines,
// by the numbers of the caller's text) and for a module that is damaged, does not pass validation, or binds what a use
// does not have; io where the compiler is not there.
[[nodiscard]] Result<std::shared_ptr<const UserKernel>> make_kernel(KernelDescription description);

// What stands before the GLSL of every kernel, behind its #version; its first lines say what it offers.
[[nodiscard]] std::string_view kernel_prelude();
// The module, such as to keep it and need no compiler the next time. Empty: the kernel has none.
[[nodiscard]] std::span<const std::uint32_t> spirv_of(const UserKernel& kernel);

}  // namespace shunt
