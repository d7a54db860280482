// Kernels for custom ops: GLSL or SPIR-V for Vulkan devices, a function for the CPU, or both.
//
// make_kernel() compiles and checks a kernel once; GraphBuilder::custom() adds uses of it to graphs. Each use runs on
// the device predicted to be fastest, among those that the kernel has code for. Shader and function must compute the
// same result. Work consists of independent items, by default one for each element of the result. A GLSL invocation
// computes one item. The function is called from several threads at once, each with a range of items. A UserKernel is
// constant and may be used by any thread; graphs, programs and devices share ownership of it.
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

// One use of a kernel: its inputs, which are contiguous, and its arguments.
struct KernelUse {
  std::span<const Operand> inputs;
  std::span<const std::byte> arguments;  // KernelDescription::argument_bytes of them, aligned to 16

  template <class T>
  [[nodiscard]] const T& arguments_as() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxKernelArgumentBytes && alignof(T) <= 16);
    return *reinterpret_cast<const T*>(arguments.data());
  }
};

// The work of one call of the CPU function: items begin to end - 1 of a use.
struct KernelWork {
  KernelUse use;
  Operand result;
  std::span<const std::byte* const> input_data;  // the first element of each input
  std::byte* result_data = nullptr;
  Parameters parameters;  // those of this submission
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  // REQUIRES (here and below): T is the type in which the operand stores an element.
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

// The functions must not throw. They are called from any thread.
struct KernelDescription {
  std::string name;  // letters, digits and _, for messages, plans and traces; several kernels may share a name
  // At most one of these two. GLSL is compiled with libshaderc after kernel_prelude(). SPIR-V is a module up to version
  // 1.3, compiled elsewhere after the same prelude.
  std::string glsl = {};
  std::vector<std::uint32_t> spirv = {};
  std::uint32_t inputs = 1;          // number of inputs
  std::uint32_t argument_bytes = 0;  // bytes of each use's arguments, a struct of 32-bit numbers in std140 layout
  // Returns the dtype and shape of the result, or why the kernel does not accept this use. Required; called first.
  std::function<Result<Operand>(const KernelUse& use)> result = nullptr;
  // Computes items on the CPU. Null: the kernel does not run there.
  std::function<Status(const KernelWork& work)> cpu = nullptr;
  // Returns the number of items of a use. Null: one for each element of the result.
  std::function<std::uint64_t(const KernelUse& use, const Operand& result)> items = nullptr;
  // Returns the number of workgroups for the GLSL. Null: enough for one invocation per item.
  std::function<std::uint64_t(const KernelUse& use, const Operand& result)> groups = nullptr;
  double flops_per_item = 4;  // for predicting times
};

// Compiles and checks a kernel. Errors: invalid for a description that contradicts itself; for GLSL that does not
// compile, with the compiler's messages and the line numbers of the caller's text; for a module that is damaged, fails
// validation or has bindings that a use lacks; io if the compiler is not there.
[[nodiscard]] Result<std::shared_ptr<const UserKernel>> make_kernel(KernelDescription description);

// Returns the text that precedes every kernel's GLSL, after #version. Its first lines say what it offers.
[[nodiscard]] std::string_view kernel_prelude();
// Returns the compiled module, for example to store it and need no compiler later. Empty: the kernel has none.
[[nodiscard]] std::span<const std::uint32_t> spirv_of(const UserKernel& kernel);

}  // namespace shunt
