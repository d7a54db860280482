// Weights in strips as halves, scaled already, for products of many rows, whose sums cannot be scaled by groups.
//
// StripHalves<dtype> is what a thread has of a chunk (Strip<dtype>), and its four values of a step. So that these
// neither overflow nor become too small, they are multiplied by a power of two, 2^u, which the caller chooses by
// size(). All have:
//   kIsExact   the values, times 2^u, are halves; otherwise there is floats()
//   kIsFixed   2^u is 1, and there are no size() and use()
//   kRoom      REQUIRES: size() + u <= kRoom
//   read(chunk, thread)         reads the chunk
//   size()                      an e with |value| < 2^e for all values of the row
//   use(unit)                   sets 2^u, for halves()
//   halves(step)                the values times 2^u, rounded to halves
//   floats(step, unit, values)  the same as floats, without use()
#pragma once

#include "ops/halves.cuh"
#include "ops/strip.cuh"
#include "ops/warpgroup.cuh"

namespace shunt {

SHUNT_FUNCTION std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a < b ? b : a; }
SHUNT_FUNCTION std::int32_t larger(std::int32_t a, std::int32_t b) { return a < b ? b : a; }

// The properties of quantized formats that Strip<dtype> lacks. Values are (quant - bias) * scale, or quant * scale +
// offset.
struct QuantFormat {
  std::uint32_t bits = 0;  // |quant - bias| <= 2^bits
  std::uint32_t bias = 0;
  bool is_plain = false;  // quants are bits of halves, integers times 2^-24, of which `bias` has not been subtracted
  std::uint32_t scale_bits = 0;  // of the groups' integers: |scale - scale_bias| <= 2^scale_bits
  std::uint32_t scale_bias = 0;
};
constexpr QuantFormat quant_format(std::uint32_t of) {
  switch (of) {
    case dtype::Q4_0:
      return {3, 8, true, 0, 0};
    case dtype::Q5_0:
      return {4, 16, true, 0, 0};
    case dtype::Q4_1:
      return {4, 0, true, 0, 0};
    case dtype::Q5_1:
      return {5, 0, true, 0, 0};
    case dtype::Q2_K:
      return {2, 0, true, 4, 0};
    case dtype::Q3_K:
      return {2, 4, true, 5, 32};
    case dtype::Q4_K:
      return {4, 0, true, 6, 0};
    case dtype::Q5_K:
      return {5, 0, true, 6, 0};
    case dtype::Q6_K:
      return {5, 32, true, 7, 128};
    case dtype::IQ4_XS:
      return {7, 0, false, 5, 32};
    default:  // Q8_0, IQ4_NL
      return {7, 0, false, 0, 0};
  }
}

template <std::uint32_t of>
struct StripHalves {
  using Layout = Strip<of>;
  static constexpr QuantFormat kFormat = quant_format(of);
  static constexpr bool kIsExact = false;
  static constexpr bool kIsFixed = false;
  // Factors of plain quants are up to 2^15; with offsets, size() is one more.
  static constexpr std::int32_t kRoom =
      kFormat.is_plain ? 15 - 24 + static_cast<std::int32_t>(kFormat.bits) + (Layout::kHasOffsets ? 1 : 0) : 15;
  static constexpr float kFactorUnit = kFormat.is_plain ? kPerHalfOne : 1.0F;
  Layout strip;
  // Halves: of superblocks the scale and that of the minima, twice; else the scales of two groups each, then minima.
  std::uint32_t used[4];

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) { strip.read(chunk, thread); }

  SHUNT_FUNCTION std::int32_t size() const {
    std::int32_t scales = 0;
    std::int32_t minima = 0;
    if constexpr (Layout::kHasOuter) {
      scales = size_of(strip.header.scale()) + static_cast<std::int32_t>(kFormat.scale_bits);
      if constexpr (Layout::kHasOffsets)
        minima = size_of(strip.header.min()) + static_cast<std::int32_t>(kFormat.scale_bits);
    } else {
      scales = size_of_four([this](std::uint32_t i) { return strip.header.scale(i); });
      if constexpr (Layout::kHasOffsets)
        minima = size_of_four([this](std::uint32_t i) { return strip.header.offset(i); });
    }
    const std::int32_t products = scales + static_cast<std::int32_t>(kFormat.bits);
    return Layout::kHasOffsets ? larger(products, minima) + 1 : products;
  }
  template <class Value>
  SHUNT_FUNCTION static std::int32_t size_of_four(Value value) {
    return larger(larger(size_of(value(0)), size_of(value(1))), larger(size_of(value(2)), size_of(value(3))));
  }

  SHUNT_FUNCTION void use(float unit) {
    const float factor_unit = unit * kFactorUnit;
    if constexpr (Layout::kHasOuter) {
      used[0] = twice_narrow(strip.header.scale() * factor_unit);
      if constexpr (Layout::kHasOffsets) used[1] = twice_narrow(strip.header.min() * unit * -kPerHalfOne);
    } else {
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 2; ++i) {
        used[i] = narrow_pair(strip.header.scale(2U * i) * factor_unit, strip.header.scale(2U * i + 1U) * factor_unit);
        if constexpr (Layout::kHasOffsets)
          used[2U + i] = narrow_pair(strip.header.offset(2U * i) * unit, strip.header.offset(2U * i + 1U) * unit);
      }
    }
  }
  SHUNT_FUNCTION static std::uint32_t twice_narrow(float value) { return narrow_pair(value, value); }
  // The factors of quants, and the offsets, of groups 2 i and 2 i + 1.
  SHUNT_FUNCTION std::uint32_t factors(std::uint32_t i) const {
    if constexpr (Layout::kHasOuter) {
      return product_of_halves(less_bias<kFormat.scale_bias>(strip.header.scales(i) | kHalves1024), used[0]);
    } else {
      return used[i];
    }
  }
  // Includes the rounding error of the factor, times a medium quant.
  SHUNT_FUNCTION std::uint32_t offsets(std::uint32_t i) const {
    if constexpr (Layout::kHasOuter) {
      constexpr std::uint32_t kMedium = (1U << kFormat.bits) / 2U * 0x00010001U;  // times 2^-24
      const std::uint32_t scales = less_bias<kFormat.scale_bias>(strip.header.scales(i) | kHalves1024);
      const std::uint32_t lost = fused_halves(scales, used[0], factors(i) ^ 0x80008000U);
      return fused_halves(lost, kMedium, product_of_halves(strip.header.minima(i), used[1]));
    } else {
      return used[2U + i];
    }
  }

  SHUNT_FUNCTION StepHalves halves(std::uint32_t step) const {
    const std::uint32_t group = step * 16U / Layout::kGroupColumns;
    const std::uint32_t factor = twice_half(factors(group / 2U), group % 2U);
    if constexpr (!kFormat.is_plain) {
      const StepHalves quants = strip.step(step);
      return {product_of_halves(quants.low, factor), product_of_halves(quants.high, factor)};
    } else {
      constexpr std::uint32_t kSixteenth = 0x2C002C00U;
      constexpr std::uint32_t kMinusBias = 0x80008000U | kFormat.bias * 0x00010001U;  // times 2^-24
      const StepHalves quants = strip.quants.integers(step, 0);
      const std::uint32_t of_step = step % 2U == 0 ? factor : product_of_halves(factor, kSixteenth);
      std::uint32_t offset = 0;
      if constexpr (Layout::kHasOffsets) {
        offset = twice_half(offsets(group / 2U), group % 2U);
      } else {
        offset = product_of_halves(factor, kMinusBias);
      }
      return {fused_halves(quants.low, of_step, offset), fused_halves(quants.high, of_step, offset)};
    }
  }
  SHUNT_FUNCTION void floats(std::uint32_t step, float unit, float (&values)[4]) const {
    const std::uint32_t group = step * 16U / Layout::kGroupColumns;
    const float one = Layout::kOne * static_cast<float>(step % 2U == 0 ? 1U : Layout::kOddFactor);
    const float factor = strip.scale(group) * strip.outer() * unit * (1.0F / one);
    const StepHalves quants = strip.step(step);
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) {
      values[e] = half_of(e < 2U ? quants.low : quants.high, e % 2U) * factor;
      if constexpr (Layout::kHasOffsets) values[e] += strip.offset(group) * unit;
    }
  }
};

template <>
struct StripHalves<dtype::F16> {
  static constexpr bool kIsExact = true;
  static constexpr bool kIsFixed = true;
  Strip<dtype::F16> strip;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) { strip.read(chunk, thread); }
  SHUNT_FUNCTION StepHalves halves(std::uint32_t step) const { return strip.step(step); }
};

// Of a row's chunk, only values below 2^-31 times the largest lose bits.
template <>
struct StripHalves<dtype::BF16> {
  static constexpr bool kIsExact = true;
  static constexpr bool kIsFixed = false;
  static constexpr std::int32_t kRoom = 15;
  Strip<dtype::BF16> strip;
  std::uint32_t largest;  // of the row, without sign
  float factor;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    strip.read(chunk, thread);
    largest = 0;
    SHUNT_UNROLL
    for (const std::uint32_t word : strip.numbers.words)
      largest = larger(largest, larger(word & 0x7FFFU, word >> 16U & 0x7FFFU));
    largest = largest_of_quad(largest);
  }
  SHUNT_FUNCTION std::int32_t size() const { return static_cast<std::int32_t>(largest >> 7U) - 126; }
  SHUNT_FUNCTION void use(float unit) { factor = unit; }
  SHUNT_FUNCTION StepHalves halves(std::uint32_t step) const {
    const StepHalves numbers = strip.step(step);
    return {scaled(numbers.low), scaled(numbers.high)};
  }
  SHUNT_FUNCTION std::uint32_t scaled(std::uint32_t pair) const {
    return narrow_pair(widen_bf16(pair) * factor, kernel_math::float_of(pair & 0xFFFF0000U) * factor);
  }
};

// Values have two bits, and scales are powers of two.
template <>
struct StripHalves<dtype::MXFP4> {
  static constexpr bool kIsExact = true;
  static constexpr bool kIsFixed = false;
  static constexpr std::int32_t kRoom = 4;  // factors are up to 2^15
  Strip<dtype::MXFP4> strip;
  std::uint32_t used[2];

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) { strip.read(chunk, thread); }
  SHUNT_FUNCTION std::int32_t size() const {
    return StripHalves<dtype::Q4_0>::size_of_four([this](std::uint32_t i) { return strip.scale(i); }) + 4;
  }
  SHUNT_FUNCTION void use(float unit) {
    const auto factor = [this, unit](std::uint32_t i) {
      return strip.scale(i) * unit * (1.0F / Strip<dtype::MXFP4>::kOne);
    };
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) used[i] = narrow_pair(factor(2U * i), factor(2U * i + 1U));
  }
  SHUNT_FUNCTION StepHalves halves(std::uint32_t step) const {
    const std::uint32_t factor = twice_half(used[step / 4U], step / 2U % 2U);
    const StepHalves quants = strip.step(step);
    return {product_of_halves(quants.low, factor), product_of_halves(quants.high, factor)};
  }
};

}  // namespace shunt
