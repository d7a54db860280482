// The searches of encode_search.h on a GPU: what a thread does for one group of elements. Every sum has the order of
// additions that it has there, so that blocks are the same bit for bit.
#pragma once

#include "ops/quantize/scales.cuh"
#include "ops/weight.cuh"

// Products that are fused with sums would round otherwise than the processor does.
#if defined(__clang__)
#pragma clang fp contract(off)
#endif

namespace shunt::encoding {

inline constexpr std::uint32_t kSuper = 256;  // elements of the larger blocks

enum class Levels : std::uint32_t { even, codebook, mx };

// What the search needs to know of a dtype.
struct Format {
  std::uint32_t elements;  // of a block
  std::uint32_t group;     // elements of a group
  Levels levels;
  float low;  // the least and the greatest level
  float high;
  bool has_min;
  float scale_low;  // of the scales of groups in larger blocks
  float scale_high;
  const float* level;  // other levels, ascending
};

SHUNT_FUNCTION Format format_of(std::uint32_t of, const float* level) {
  switch (of) {
    case dtype::Q4_0:
      return {32, 32, Levels::even, -8.0F, 7.0F, false, 0.0F, 0.0F, level};
    case dtype::Q4_1:
      return {32, 32, Levels::even, 0.0F, 15.0F, true, 0.0F, 0.0F, level};
    case dtype::Q5_0:
      return {32, 32, Levels::even, -16.0F, 15.0F, false, 0.0F, 0.0F, level};
    case dtype::Q5_1:
      return {32, 32, Levels::even, 0.0F, 31.0F, true, 0.0F, 0.0F, level};
    case dtype::IQ4_NL:
      return {32, 32, Levels::codebook, -127.0F, 113.0F, false, 0.0F, 0.0F, level};
    case dtype::MXFP4:
      return {32, 32, Levels::mx, -12.0F, 12.0F, false, 0.0F, 0.0F, level};
    case dtype::Q2_K:
      return {kSuper, 16, Levels::even, 0.0F, 3.0F, true, 0.0F, 15.0F, level};
    case dtype::Q3_K:
      return {kSuper, 16, Levels::even, -4.0F, 3.0F, false, -32.0F, 31.0F, level};
    case dtype::Q4_K:
      return {kSuper, 32, Levels::even, 0.0F, 15.0F, true, 0.0F, 63.0F, level};
    case dtype::Q5_K:
      return {kSuper, 32, Levels::even, 0.0F, 31.0F, true, 0.0F, 63.0F, level};
    case dtype::Q6_K:
      return {kSuper, 16, Levels::even, -32.0F, 31.0F, false, -128.0F, 127.0F, level};
    case dtype::IQ4_XS:
      return {kSuper, 32, Levels::codebook, -127.0F, 113.0F, false, -32.0F, 31.0F, level};
    default:  // Q8_0
      return {32, 32, Levels::even, -127.0F, 127.0F, false, 0.0F, 0.0F, level};
  }
}

// x ~ scale * level - min.
struct Grid {
  float scale;
  float min;
};

// What one try of a search found.
struct Trial {
  Grid grid;
  float error;
  float product;  // of levels and x
  float square;   // of levels
};

// Elements that share a grid.
struct Group {
  const float* x;
  const float* weights;
  std::uint32_t elements;
};

// Twice the values of a 4-bit float, ascending, and infinity after the 15 of them.
SHUNT_FUNCTION float mx_level(std::uint32_t number) {
  if (number == 15U) return kernel_math::float_of(0x7F800000U);
  const std::uint32_t size = number < 7U ? 7U - number : number - 7U;
  const float twice = static_cast<float>(size < 4U ? size : (2U | (size & 1U)) << (size / 2U - 1U));
  return number < 7U ? -twice : twice;
}

// Returns the number of the nearest of the format's levels; NaN gives the first.
SHUNT_FUNCTION std::uint32_t number_of(const Format& format, float value) {
  std::uint32_t number = 0;
  for (std::uint32_t step = 8; step != 0; step /= 2)
    if (value > (format.level[number + step - 1] + format.level[number + step]) / 2.0F) number += step;
  return number;
}

// Returns the level nearest to x on a grid with this minimum and the inverse of its scale.
SHUNT_FUNCTION float level_of(const Format& format, float x, float min, float factor) {
  const float value = (x + min) * factor;
  if (format.levels == Levels::even) return nearest(value, format.low, format.high);
  return format.level[number_of(format, value)];
}

// Returns how a block stores a level.
SHUNT_FUNCTION std::uint32_t code_of(const Format& format, float level) {
  if (format.levels == Levels::even) return static_cast<std::uint32_t>(level - format.low);
  const std::uint32_t number = number_of(format, level);
  if (format.levels == Levels::codebook) return number;
  return number < 7U ? 15U - number : number - 7U;
}

// Sums value(j) over the elements of a group as four lanes of a processor do.
template <class Value>
SHUNT_FUNCTION float sum_of(const Group& of, Value value) {
  float even = 0.0F;
  float odd = 0.0F;
  for (std::uint32_t first = 0; first < 4; ++first) {
    float sum = 0.0F;
    for (std::uint32_t j = first; j < of.elements; j += 4) sum += value(j);
    float& pair = first % 2U == 0U ? even : odd;
    pair = first < 2 ? sum : pair + sum;
  }
  return even + odd;
}

// Returns the element of the largest magnitude, with its sign.
SHUNT_FUNCTION float extreme_of(const float* x, std::uint32_t elements) {
  float extreme = 0.0F;
  for (std::uint32_t j = 0; j < elements; ++j)
    if (kernel_math::abs(x[j]) > kernel_math::abs(extreme)) extreme = x[j];
  return extreme;
}

// Returns the error of a grid with the levels that `from` gives.
SHUNT_FUNCTION float error_of(const Format& format, const Group& of, Grid from, Grid grid) {
  const float factor = inverse(from.scale);
  return sum_of(of, [&](std::uint32_t j) {
    const float difference = level_of(format, of.x[j], from.min, factor) * grid.scale - grid.min - of.x[j];
    return of.weights[j] * difference * difference;
  });
}

// Returns how many grids are tried for a group.
SHUNT_FUNCTION std::uint32_t trials_of(const Format& format) {
  if (format.levels == Levels::mx) return 3;
  if (format.levels == Levels::codebook) return 38;
  return format.has_min ? 15 : 19;
}

// Without a minimum, trial t puts the extreme element at a position near an end of the levels.
SHUNT_FUNCTION float end_of(const Format& format, std::uint32_t t) {
  const float step = static_cast<float>(t % 19U) - 9.0F;
  if (format.levels == Levels::even) return format.low + 0.1F * step;
  return (t < 19U ? format.low : format.high) + 2.0F * step;
}
SHUNT_FUNCTION Trial try_scale(const Format& format, const Group& of, std::uint32_t t) {
  const float factor = end_of(format, t) / extreme_of(of.x, of.elements);
  const auto weighted = [&](std::uint32_t j) { return of.weights[j] * level_of(format, of.x[j], 0.0F, factor); };
  Trial trial{};
  trial.product = sum_of(of, [&](std::uint32_t j) { return weighted(j) * of.x[j]; });
  trial.square = sum_of(of, [&](std::uint32_t j) { return weighted(j) * level_of(format, of.x[j], 0.0F, factor); });
  return trial;
}
// The best scale leaves the least error, which is the sum of weighted squares minus the squares explained.
SHUNT_FUNCTION Grid best_scale(const Format& format, const Group& of, const Trial* trials) {
  const float extreme = extreme_of(of.x, of.elements);
  if (extreme == 0.0F) return {0.0F, 0.0F};
  float scale = extreme / format.low;
  float gain = 0.0F;
  for (std::uint32_t t = 0; t < trials_of(format); ++t) {
    const float product = trials[t].product;
    const float square = trials[t].square;
    if (!(square > 0.0F && product * product > gain * square)) continue;
    gain = product * product / square;
    scale = product / square;
  }
  return {scale, 0.0F};
}

// The least element, which is at most 0 where minima are not negative, and the distance to the greatest.
struct Span {
  float low;
  float range;
};
SHUNT_FUNCTION Span span_of(const Format& format, const Group& of) {
  float smallest = of.x[0];
  float largest = of.x[0];
  for (std::uint32_t j = 1; j < of.elements; ++j) {
    if (of.x[j] < smallest) smallest = of.x[j];
    if (!(of.x[j] < largest)) largest = of.x[j];
  }
  if (format.elements == kSuper && smallest > 0.0F) smallest = 0.0F;
  return {smallest, largest - smallest};
}

// Solves for the best grid with the levels that `from` gives, by weighted least squares.
SHUNT_FUNCTION Grid solved(const Format& format, const Group& of, Grid from) {
  const float factor = inverse(from.scale);
  const auto level = [&](std::uint32_t j) { return level_of(format, of.x[j], from.min, factor); };
  const float w = sum_of(of, [&](std::uint32_t j) { return of.weights[j]; });
  const float wx = sum_of(of, [&](std::uint32_t j) { return of.weights[j] * of.x[j]; });
  const float wq = sum_of(of, [&](std::uint32_t j) { return of.weights[j] * level(j); });
  const float wqq = sum_of(of, [&](std::uint32_t j) { return of.weights[j] * level(j) * level(j); });
  const float wqx = sum_of(of, [&](std::uint32_t j) { return of.weights[j] * level(j) * of.x[j]; });
  const float determinant = w * wqq - wq * wq;
  if (!(determinant > 0.0F)) return {0.0F, 0.0F};
  Grid grid{(w * wqx - wq * wx) / determinant, (wq * wqx - wqq * wx) / determinant};
  if (format.elements == kSuper && grid.min < 0.0F) grid = {wqx / wqq, 0.0F};
  return grid.scale < 0.0F ? Grid{0.0F, 0.0F} : grid;
}
// Trial t overshoots or undershoots the span of the group, and is refined.
SHUNT_FUNCTION Trial try_grid(const Format& format, const Group& of, std::uint32_t t) {
  const Span span = span_of(format, of);
  const float step = static_cast<float>(t) - 7.0F;
  const Grid from = solved(format, of, {span.range / (format.high + 0.2F * step), -span.low});
  Trial trial{};
  trial.grid = solved(format, of, from);
  trial.error = error_of(format, of, from, trial.grid);
  return trial;
}
SHUNT_FUNCTION Grid best_grid(const Format& format, const Group& of, const Trial* trials) {
  const Span span = span_of(format, of);
  if (!(span.range > 0.0F)) return {0.0F, -span.low};
  Grid best{span.range / format.high, -span.low};
  float error = -1.0F;
  for (std::uint32_t t = 0; t < trials_of(format); ++t) {
    if (!(trials[t].grid.scale > 0.0F && (error < 0.0F || trials[t].error < error))) continue;
    error = trials[t].error;
    best = trials[t].grid;
  }
  return best;
}

// The exponents that keep the largest element in range, and their neighbours. Scales stay normal: smaller ones may have
// no finite inverse.
SHUNT_FUNCTION std::uint32_t mx_exponent(const Group& of, std::uint32_t t) {
  const float extreme = extreme_of(of.x, of.elements);
  const auto field = static_cast<std::int32_t>(kernel_math::bits_of(extreme) >> 23U & 255U);
  const std::int32_t exponent = (extreme == 0.0F ? 124 : field - 2) + (t == 0 ? 0 : t == 1 ? 1 : -1);
  return static_cast<std::uint32_t>(exponent < 2 ? 2 : exponent > 254 ? 254 : exponent);
}
SHUNT_FUNCTION Grid mx_grid(std::uint32_t exponent) { return {kernel_math::float_of((exponent - 1U) << 23U), 0.0F}; }
SHUNT_FUNCTION Trial try_exponent(const Format& format, const Group& of, std::uint32_t t) {
  Trial trial{};
  trial.grid = mx_grid(mx_exponent(of, t));
  trial.error = error_of(format, of, trial.grid, trial.grid);
  return trial;
}
SHUNT_FUNCTION std::uint32_t best_exponent(const Group& of, const Trial* trials) {
  std::uint32_t best = 0;
  for (std::uint32_t t = 1; t < 3; ++t)
    if (trials[t].error < trials[best].error) best = t;
  return mx_exponent(of, best);
}

}  // namespace shunt::encoding
