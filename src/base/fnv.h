// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/: a hash to tell contents apart, not to resist attacks. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shunt {

// Continues `hash` with `data`.
[[nodiscard]] inline std::uint64_t fnv1a(std::span<const std::byte> data, std::uint64_t hash = 0xCBF29CE484222325U) {
  for (const std::byte each : data) hash = (hash ^ std::to_integer<std::uint64_t>(each)) * 0x100000001B3U;
  return hash;
}

}  // namespace shunt
