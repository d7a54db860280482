// Sweeps over many cases take fewer of them under sanitizers, where code runs about ten times slower.
#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

namespace shunt::test {

#ifdef SHUNT_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The values that sweeps give each byte of a file. Under sanitizers, only some, not the same for neighbours.
inline std::vector<std::byte> telling_bytes(std::size_t at) {
  constexpr std::byte kBytes[] = {std::byte{0x00}, std::byte{0x01}, std::byte{0x7F}, std::byte{0x80}, std::byte{0xFF}};
  if (!kSanitized) return {std::begin(kBytes), std::end(kBytes)};
  return {kBytes[at % std::size(kBytes)], kBytes[(at + 2) % std::size(kBytes)]};
}

}  // namespace shunt::test
