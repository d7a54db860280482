// More arithmetic on pairs of halves, beside that of ops/product.cuh, and what else takes one instruction on a GPU.
#pragma once

#include "ops/product.cuh"

namespace shunt {

#if defined(__clang__) && defined(__NVPTX__)

SHUNT_FUNCTION std::uint32_t product_of_halves(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}
// Returns a * b + c, rounded once.
SHUNT_FUNCTION std::uint32_t fused_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}
// Returns x / (1 + exp(-x)) with an error of about 2^-21 of it, or of |x| / 2^24 of it if that is more.
SHUNT_FUNCTION float silu(float x) {
  float power;
  float quotient;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * -1.44269504F));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(quotient) : "f"(1.0F + power));
  return x * quotient;
}

#else

SHUNT_FUNCTION float silu(float x) { return x / (1.0F + kernel_math::exp(-x)); }
// Calls `compute` with the widened lower halves, then with the upper ones.
template <class Compute>
SHUNT_FUNCTION std::uint32_t each_half(std::uint32_t a, std::uint32_t b, std::uint32_t c, Compute compute) {
  return narrow_pair(compute(low_half(a), low_half(b), low_half(c)), compute(high_half(a), high_half(b), high_half(c)));
}
SHUNT_FUNCTION std::uint32_t product_of_halves(std::uint32_t a, std::uint32_t b) {
  return each_half(a, b, 0, [](float x, float y, float) { return x * y; });
}
SHUNT_FUNCTION std::uint32_t fused_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return each_half(a, b, c, [](float x, float y, float z) {
    return static_cast<float>(static_cast<double>(x) * static_cast<double>(y) + static_cast<double>(z));
  });
}

#endif

// Returns one half of a pair twice.
SHUNT_FUNCTION std::uint32_t twice_half(std::uint32_t pair, std::uint32_t which) {
  return byte_permute(pair, pair, which == 0 ? 0x1010U : 0x3232U);
}
SHUNT_FUNCTION float half_of(std::uint32_t pair, std::uint32_t which) {
  return which == 0 ? low_half(pair) : high_half(pair);
}

// Returns an e with |value| < 2^e.
SHUNT_FUNCTION std::int32_t size_of(float value) {
  return static_cast<std::int32_t>(kernel_math::bits_of(value) >> 23U & 255U) - 126;
}

}  // namespace shunt
