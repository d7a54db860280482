// Overflow-checked products and sums of extents, counts and bytes that a file, an option or a caller chose. They return
// nullopt if the result does not fit the wanted type. Such sizes are computed only here. Pure functions; any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

namespace shunt {

// A factor of 0 makes the product 0, whatever the others are. A single factor is converted, if it fits.
template <std::unsigned_integral T = std::uint64_t, std::integral... Factors>
[[nodiscard]] constexpr std::optional<T> checked_product(Factors... factors) {
  const bool has_zero = ((factors == 0) || ...);
  if (has_zero) return T{0};
  T product = 1;
  const bool fits = (!__builtin_mul_overflow(product, factors, &product) && ...);
  return fits ? std::optional(product) : std::nullopt;
}

template <std::unsigned_integral T = std::uint64_t, std::integral... Terms>
[[nodiscard]] constexpr std::optional<T> checked_sum(Terms... terms) {
  T sum = 0;
  const bool fits = (!__builtin_add_overflow(sum, terms, &sum) && ...);
  return fits ? std::optional(sum) : std::nullopt;
}

}  // namespace shunt
