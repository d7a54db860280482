// The factors of products as each arithmetic takes them, and the products in double.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ops/arithmetic.h"
#include "ops/quantize/blocks.h"

namespace shunt::test {

// Numbers in one part, or in two with bf16x3. The second is 0 otherwise.
struct Factors {
  std::vector<float> high;
  std::vector<float> low;
};

// Rounds to BF16 if the arithmetic does; leaves the numbers as they are if not.
inline Factors factors_of(std::span<const float> values, Arithmetic arithmetic) {
  const auto round = [](float v) { return bf16_to_f32(f32_to_bf16(v)); };
  Factors factors{.high = {values.begin(), values.end()}, .low = std::vector<float>(values.size())};
  if (arithmetic != Arithmetic::bf16 && arithmetic != Arithmetic::bf16x3) return factors;
  for (std::size_t i = 0; i < values.size(); ++i) {
    factors.high[i] = round(values[i]);
    if (arithmetic == Arithmetic::bf16x3) factors.low[i] = round(values[i] - factors.high[i]);
  }
  return factors;
}

inline double product(const Factors& a, std::size_t i, const Factors& b, std::size_t j) {
  // Not by operator[], whose assertions take most of a test's time under sanitizers; these see each access too.
  const auto at = [](const std::vector<float>& values, std::size_t index) {
    return static_cast<double>(values.data()[index]);
  };
  return at(a.high, i) * at(b.high, j) + at(a.high, i) * at(b.low, j) + at(a.low, i) * at(b.high, j);
}

}  // namespace shunt::test
