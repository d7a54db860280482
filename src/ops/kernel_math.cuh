// The float functions that expressions and kernels need, without a library: the same for CUDA, HIP and the host.
//
// SHUNT_FUNCTION makes each a device function. Results are within 4 units in the last place, erf within 8, sin and cos
// within 2e-7; tests/ops/kernel_math_test.cpp checks that.
#pragma once

#include <cstdint>

namespace shunt::kernel_math {

SHUNT_FUNCTION float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
SHUNT_FUNCTION std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }

SHUNT_FUNCTION float abs(float x) { return float_of(bits_of(x) & 0x7FFFFFFFU); }
// NaN if either argument is NaN.
SHUNT_FUNCTION float min(float a, float b) { return b < a || b != b ? b : a; }
SHUNT_FUNCTION float max(float a, float b) { return a < b || b != b ? b : a; }
// The other argument if one is NaN.
SHUNT_FUNCTION float larger(float a, float b) { return __builtin_fmaxf(a, b); }
SHUNT_FUNCTION float select(float condition, float chosen, float other) { return condition > 0.0F ? chosen : other; }

SHUNT_FUNCTION float sqrt(float x) {
#if defined(__CUDACC__) && !defined(__clang__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// 2^exponent. REQUIRES: -126 <= exponent <= 127.
SHUNT_FUNCTION float power_of_two(std::int32_t exponent) {
  return float_of(static_cast<std::uint32_t>(exponent + 127) << 23U);
}

// exp(x) = 2^n e^r with n whole and |r| <= ln 2 / 2; ln 2 is subtracted in two parts.
SHUNT_FUNCTION float exp(float x) {
  if (x != x) return x;
  if (x > 88.8F) return float_of(0x7F800000U);
  if (x < -104.0F) return 0.0F;
  const float scaled = x * 1.44269504F;
  const std::int32_t n = static_cast<std::int32_t>(scaled + (scaled < 0.0F ? -0.5F : 0.5F));
  const float whole = static_cast<float>(n);
  const float r = (x - whole * 0.693145751953125F) - whole * 1.42860682e-6F;
  float sum = 1.0F / 5040.0F;
  sum = sum * r + 1.0F / 720.0F;
  sum = sum * r + 1.0F / 120.0F;
  sum = sum * r + 1.0F / 24.0F;
  sum = sum * r + 1.0F / 6.0F;
  sum = sum * r + 0.5F;
  sum = (sum * r) * r + r + 1.0F;
  const std::int32_t half = n / 2;  // 2^n itself may not be a normal number
  return sum * power_of_two(half) * power_of_two(n - half);
}

// 2^x. Results below the smallest normal number are zero.
SHUNT_FUNCTION float exp2(float x) {
#if defined(__clang__) && defined(__NVPTX__)
  return __nvvm_ex2_approx_ftz_f(x);
#else
  if (x != x) return x;
  if (x >= 128.0F) return float_of(0x7F800000U);
  if (x < -126.0F) return 0.0F;
  const std::int32_t n = static_cast<std::int32_t>(x + (x < 0.0F ? -0.5F : 0.5F));
  const std::int32_t half = n / 2;
  return exp((x - static_cast<float>(n)) * 0.693147181F) * power_of_two(half) * power_of_two(n - half);
#endif
}

SHUNT_FUNCTION float reciprocal(float x) {
#if defined(__clang__) && defined(__NVPTX__)
  return __nvvm_rcp_approx_ftz_f(x);
#else
  return 1.0F / x;
#endif
}

// For x = 2^n m with m between sqrt(1/2) and sqrt(2), log m = 2 artanh s with s = (m - 1) / (m + 1).
SHUNT_FUNCTION float log(float x) {
  if (!(x >= 0.0F)) return float_of(0x7FC00000U);
  if (x == 0.0F) return float_of(0xFF800000U);
  if (bits_of(x) == 0x7F800000U) return x;
  const bool subnormal = bits_of(x) < 0x00800000U;
  const std::uint32_t bits = bits_of(subnormal ? x * 8388608.0F : x);
  // 0x3F3504F3 is sqrt(1/2), the lowest m, as bits.
  const std::int32_t n = static_cast<std::int32_t>(bits - 0x3F3504F3U) >> 23;
  const float m = float_of(bits - (static_cast<std::uint32_t>(n) << 23U));
  const float count = static_cast<float>(subnormal ? n - 23 : n);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float square = s * s;
  float sum = 2.0F / 9.0F;
  sum = sum * square + 2.0F / 7.0F;
  sum = sum * square + 2.0F / 5.0F;
  sum = sum * square + 2.0F / 3.0F;
  return count * 0.693145751953125F + (count * 1.42860682e-6F + ((sum * square) * s + (s + s)));
}

// Computes the sine of x plus `quarters` quarter turns (1: the cosine) for |x| <= 8192. Subtracts the nearest quarter
// turn in three parts, of which the first two have exact products; Taylor series take the remainder.
SHUNT_FUNCTION float sine(float x, std::int32_t quarters) {
  if (!(abs(x) < 1e9F)) return x - x;  // NOLINT(misc-redundant-expression): NaN of an infinity
  const float scaled = x * 0.636619772F;
  const std::int32_t n = static_cast<std::int32_t>(scaled + (scaled < 0.0F ? -0.5F : 0.5F));
  const float whole = static_cast<float>(n);
  const float r = ((x - whole * 1.5703125F) - whole * 4.83751297e-4F) - whole * 7.54978942e-8F;
  const float square = r * r;
  const std::int32_t quadrant = n + quarters;
  float sum = 1.0F / 362880.0F;
  if ((quadrant & 1) == 0) {
    sum = sum * square - 1.0F / 5040.0F;
    sum = sum * square + 1.0F / 120.0F;
    sum = sum * square - 1.0F / 6.0F;
    sum = (sum * square) * r + r;
  } else {
    sum = -1.0F / 3628800.0F;
    sum = sum * square + 1.0F / 40320.0F;
    sum = sum * square - 1.0F / 720.0F;
    sum = sum * square + 1.0F / 24.0F;
    sum = sum * square - 0.5F;
    sum = sum * square + 1.0F;
  }
  return (quadrant & 2) == 0 ? sum : -sum;
}
SHUNT_FUNCTION float sin(float x) { return sine(x, 0); }
SHUNT_FUNCTION float cos(float x) { return sine(x, 1); }

// Uses a continued fraction near zero, where the other form would cancel.
SHUNT_FUNCTION float tanh(float x) {
  const float size = abs(x);
  float value = 1.0F;
  if (size < 1.0F) {
    const float square = x * x;
    float rest = 13.0F;
    for (float term = 11.0F; term > 0.0F; term -= 2.0F) rest = term + square / rest;
    return x / rest;
  }
  if (size < 20.0F) value = 1.0F - 2.0F / (exp(2.0F * size) + 1.0F);
  if (size != size) value = size;
  return x < 0.0F ? -value : value;
}

// Uses a series of positive terms, and a continued fraction where that would take long
// (https://dlmf.nist.gov/7.6.E2, https://dlmf.nist.gov/7.9.E1).
SHUNT_FUNCTION float erf(float x) {
  const float size = abs(x);
  float value = 1.0F;
  if (size < 2.0F) {
    float term = size;
    float sum = size;
    for (float n = 3.0F; n < 60.0F; n += 2.0F) {
      term *= 2.0F * size * size / n;
      sum += term;
    }
    value = 1.12837917F * exp(-size * size) * sum;
  } else if (size < 6.0F) {
    float tail = 0.0F;
    for (float n = 30.0F; n > 0.0F; n -= 1.0F) tail = n * 0.5F / (size + tail);
    value = 1.0F - exp(-size * size) * 0.564189584F / (size + tail);
  }
  if (size != size) value = size;
  return x < 0.0F ? -value : value;
}

}  // namespace shunt::kernel_math
