// The orders in which a weight's blocks may lie in a device's memory (layouts.def). A device says which one it reads
// fastest (Device::layout_for); whoever binds a weight says which one it has (Binding::layout).
#pragma once

#include <cstdint>
#include <string_view>

namespace shunt {

enum class Layout : std::uint8_t {
#define SHUNT_LAYOUT(name, meaning) name,
#include "ops/layouts.def"
};

[[nodiscard]] constexpr std::string_view name_of(Layout layout) {
  constexpr std::string_view kNames[] = {
#define SHUNT_LAYOUT(name, meaning) #name,
#include "ops/layouts.def"
  };
  return kNames[static_cast<std::size_t>(layout)];
}

}  // namespace shunt
