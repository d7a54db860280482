// The searches behind the encoders: they choose the grid of quantized values for a group of elements.
//
// Every processor uses four vector lanes and the same order of additions, so that files quantized on different machines
// are identical. Pure functions; safe from any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "ops/quantize/blocks.h"

namespace shunt::encoding {

using Lanes = float __attribute__((vector_size(16)));
inline constexpr std::size_t kLanes = 4;

inline Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(Lanes));
  return lanes;
}
inline void store(Lanes lanes, float* to) { std::memcpy(to, &lanes, sizeof(Lanes)); }
inline Lanes all(float value) { return Lanes{value, value, value, value}; }

// Returns the nearest whole number in [low, high]; NaN gives one of the bounds. Adding and subtracting 1.5 * 2^23
// rounds as the processor does. REQUIRES: both bounds are small.
inline Lanes nearest(Lanes value, float low, float high) {
  const Lanes round = all(12582912.0F);
  const Lanes raised = value > all(low) ? value : all(low);
  const Lanes clamped = raised < all(high) ? raised : all(high);
  return (clamped + round) - round;
}
inline float nearest(float value, float low, float high) { return nearest(all(value), low, high)[0]; }

// Sums each term over all elements; `values_of(j)` returns the terms of elements j to j + 3.
template <std::size_t elements, std::size_t terms, class Values>
inline std::array<float, terms> sums_over(Values values_of) {
  static_assert(elements % kLanes == 0);
  std::array<Lanes, terms> lanes{};
  for (std::size_t j = 0; j < elements; j += kLanes) {
    const std::array<Lanes, terms> values = values_of(j);
    for (std::size_t term = 0; term < terms; ++term) lanes[term] += values[term];
  }
  std::array<float, terms> sums;
  for (std::size_t term = 0; term < terms; ++term)
    sums[term] = (lanes[term][0] + lanes[term][2]) + (lanes[term][1] + lanes[term][3]);
  return sums;
}

inline float inverse(float value) { return value == 0.0F ? 0.0F : 1.0F / value; }

// Converts a scale to F16. Where the steps between small numbers are coarse, it rounds away from zero: quants can
// shrink to fit a scale that is too large, but cannot grow beyond their range.
inline std::uint16_t f16_scale(float value) {
  const std::uint16_t bits = f32_to_f16(value);
  const bool too_small = std::abs(f16_to_f32(bits)) < std::abs(value) * (1.0F - 0x1p-9F);
  return static_cast<std::uint16_t>(bits + (too_small ? 1 : 0));
}

// The element of the largest magnitude, with its sign.
inline float extreme_of(const float* x, std::size_t elements) {
  float extreme = 0;
  for (std::size_t j = 0; j < elements; ++j)
    if (std::abs(x[j]) > std::abs(extreme)) extreme = x[j];
  return extreme;
}

// Finds the scale for x ~ scale * q, q in [-kHalf, kHalf - 1]. Tries grids that put the extreme element at different
// positions near the end of the range, and solves for the best scale on each.
template <std::size_t kElements, int kHalf>
float fit_scale(const float* x, const float* weights) {
  constexpr float kLow = -kHalf;
  constexpr float kHigh = kHalf - 1;
  constexpr int kSteps = 9;
  const float extreme = extreme_of(x, kElements);
  if (extreme == 0.0F) return 0.0F;
  float best_scale = extreme / kLow;
  float best_gain = 0;  // squares explained: the error is the sum of weighted squares minus this
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float factor = (kLow + 0.1F * static_cast<float>(step)) / extreme;
    const auto [product, square] = sums_over<kElements, 2>([&](std::size_t j) -> std::array<Lanes, 2> {
      const Lanes q = nearest(load(x + j) * factor, kLow, kHigh);
      const Lanes weighted = load(weights + j) * q;
      return {weighted * load(x + j), weighted * q};
    });
    if (square > 0 && product * product > best_gain * square) {
      best_gain = product * product / square;
      best_scale = product / square;
    }
  }
  return best_scale;
}

// Computes how much an error of each element of a group counts.
inline void weigh(const float* x, std::size_t elements, float* weights) {
  float squares = 0;
  for (std::size_t j = 0; j < elements; ++j) squares += x[j] * x[j];
  const float typical = std::sqrt(squares / static_cast<float>(elements));
  for (std::size_t j = 0; j < elements; ++j) weights[j] = typical + std::abs(x[j]);
}

// x ~ scale * q - min.
struct Affine {
  float scale = 0;
  float min = 0;
};

template <int kMax, std::size_t kElements>
inline void quantize_affine(const float* x, Affine grid, float* q) {
  const float factor = inverse(grid.scale);
  for (std::size_t j = 0; j < kElements; j += kLanes)
    store(nearest((load(x + j) + grid.min) * factor, 0.0F, kMax), q + j);
}

template <std::size_t kElements>
inline float affine_error(const float* x, const float* weights, Affine grid, const float* q) {
  return sums_over<kElements, 1>([&](std::size_t j) -> std::array<Lanes, 1> {
    const Lanes difference = load(q + j) * grid.scale - grid.min - load(x + j);
    return {load(weights + j) * difference * difference};
  })[0];
}

// The sign of the minima that a format can store.
enum class MinSign : std::uint8_t { not_negative, any };

// Solves for the best grid for given quants, by weighted least squares.
template <std::size_t kElements, MinSign kMinSign>
inline Affine solve_affine(const float* x, const float* weights, const float* q) {
  const auto [w, wx, wq, wqq, wqx] = sums_over<kElements, 5>([&](std::size_t j) -> std::array<Lanes, 5> {
    const Lanes weight = load(weights + j);
    const Lanes quant = load(q + j);
    const Lanes value = load(x + j);
    return {weight, weight * value, weight * quant, weight * quant * quant, weight * quant * value};
  });
  const float determinant = w * wqq - wq * wq;
  if (!(determinant > 0)) return {};
  Affine grid{.scale = (w * wqx - wq * wx) / determinant, .min = (wq * wqx - wqq * wx) / determinant};
  if (kMinSign == MinSign::not_negative && grid.min < 0) grid = {.scale = wqx / wqq, .min = 0};
  if (grid.scale < 0) return {};
  return grid;
}

// Finds the best of several grids that overshoot or undershoot the range of the group, each refined.
template <int kMax, std::size_t kElements, MinSign kMinSign>
Affine fit_affine(const float* x, const float* weights) {
  const auto [smallest, largest] = std::minmax_element(x, x + kElements);
  const float low = kMinSign == MinSign::any ? *smallest : std::min(*smallest, 0.0F);
  const float range = *largest - low;
  if (!(range > 0)) return {.scale = 0, .min = -low};
  constexpr int kSteps = 7;
  Affine best;
  float best_error = -1;
  for (int step = -kSteps; step <= kSteps; ++step) {
    Affine grid{.scale = range / (static_cast<float>(kMax) + 0.2F * static_cast<float>(step)), .min = -low};
    std::array<float, kElements> q;
    for (int round = 0; round < 2; ++round) {
      quantize_affine<kMax, kElements>(x, grid, q.data());
      grid = solve_affine<kElements, kMinSign>(x, weights, q.data());
    }
    const float error = affine_error<kElements>(x, weights, grid, q.data());
    if (grid.scale > 0 && (best_error < 0 || error < best_error)) {
      best_error = error;
      best = grid;
    }
  }
  return best_error < 0 ? Affine{.scale = range / kMax, .min = -low} : best;
}

}  // namespace shunt::encoding
