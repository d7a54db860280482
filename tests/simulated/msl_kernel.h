// A kernel that was translated to MSL and from there to C++ (msl_as_cpp.py), and the arguments of its call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "simulated/block.h"

namespace shunt::simulated {

inline constexpr std::size_t kMetalBuffers = 31;

struct MslArgument {
  std::byte* bytes = nullptr;
  template <class T>
  operator T&() const {  // NOLINT(google-explicit-constructor): converts to the parameter's declared type
    return *reinterpret_cast<T*>(bytes);
  }
};

// Indexed by [[function_constant(i)]].
using MslConstants = std::array<std::uint32_t, 4>;

// The bindings, the specialization constants, and the thread numbers that MSL has attributes for.
struct MslCall {
  std::array<std::byte*, kMetalBuffers> buffers{};
  MslConstants constants{};
  std::uint32_t width = 1;  // of the grid, in threadgroups
  std::uint32_t height = 1;

  [[nodiscard]] MslArgument buffer(std::size_t index) const {
    if (buffers[index] != nullptr) return {buffers[index]};
    std::fprintf(stderr, "a kernel reads buffer %zu, where nothing is bound\n", index);
    std::abort();
  }
  template <class Size>
  [[nodiscard]] Size groups() const {
    return {width, height, 1};
  }
  template <class Size>
  [[nodiscard]] Size group() const {
    const auto index = static_cast<std::uint32_t>(shunt::group());
    return {index % width, index / width, 0};
  }
  template <class Size>
  [[nodiscard]] Size thread() const {
    return {shunt::lane(), 0, 0};
  }
};

struct MslKernel {
  std::string_view source;  // the MSL that it was translated from
  void (*run)(const MslCall& call) = nullptr;
};

}  // namespace shunt::simulated
