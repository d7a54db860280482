// Writes the bytes of CpuCall::arguments: the CpuKernel::write_arguments of a family whose `derive` turns an
// OpCall into its plain-data arguments.
#pragma once

#include <cstring>
#include <type_traits>

#include "ops/kernel.h"

namespace shunt {

template <auto derive>
void write_arguments(const OpCall& call, std::span<std::byte, kMaxArgumentBytes> out) {
  const auto arguments = derive(call);
  using Arguments = std::remove_const_t<decltype(arguments)>;
  static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) <= kMaxArgumentBytes);
  static_assert(sizeof(Arguments) % 16 == 0, "a uniform block is a whole number of 16-byte units");
  std::memcpy(out.data(), &arguments, sizeof(Arguments));
}

}  // namespace shunt
