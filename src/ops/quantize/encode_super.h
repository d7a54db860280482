// The searches behind the encoders of 256-element blocks, whose groups have small scales of their own that multiply the
// block's. Larger elements weigh more. Pure functions; safe from any thread.
#pragma once

#include <algorithm>
#include <array>

#include "ops/quantize/encode_search.h"

namespace shunt::encoding {

inline constexpr std::size_t kSuper = 256;  // elements of a block

// A block of Q2_K, Q4_K or Q5_K before it is packed: x ~ scale * scales[g] * q - min * mins[g].
template <int kMax, std::size_t kGroup, int kGroupMax>
struct AffineBlock {
  static constexpr std::size_t kGroups = kSuper / kGroup;
  static constexpr float kScaleMax = kGroupMax;

  std::uint16_t scale = 0;  // F16
  std::uint16_t min = 0;    // F16
  std::array<float, kGroups> scales{};
  std::array<float, kGroups> mins{};
  std::array<float, kSuper> q{};

  [[nodiscard]] Affine grid(float group_scale, float group_min) const {
    return {.scale = f16_to_f32(scale) * group_scale, .min = f16_to_f32(min) * group_min};
  }

  // Replaces the scale and minimum of each group by the neighbouring pair with the least error. Returns the error of
  // the whole block.
  float refine_groups(const float* x, const float* weights) {
    float total = 0;
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float* const group_x = x + g * kGroup;
      const float* const group_weights = weights + g * kGroup;
      const float centre_scale = scales[g];
      const float centre_min = mins[g];
      float best_error = -1;
      for (int i = 0; i < 9; ++i) {
        // The centre comes first, so that it wins ties.
        const float new_scale = centre_scale + static_cast<float>((i + 1) % 3 - 1);
        const float new_min = centre_min + static_cast<float>((i / 3 + 1) % 3 - 1);
        if (new_scale < 0 || new_scale > kScaleMax || new_min < 0 || new_min > kScaleMax) continue;
        std::array<float, kGroup> candidate;
        const Affine candidate_grid = grid(new_scale, new_min);
        quantize_affine<kMax, kGroup>(group_x, candidate_grid, candidate.data());
        const float error = affine_error<kGroup>(group_x, group_weights, candidate_grid, candidate.data());
        if (best_error >= 0 && !(error < best_error)) continue;
        best_error = error;
        scales[g] = new_scale;
        mins[g] = new_min;
        std::copy(candidate.begin(), candidate.end(), q.begin() + static_cast<std::ptrdiff_t>(g * kGroup));
      }
      total += best_error;
    }
    return total;
  }

  // Solves for the best scale and minimum of the block, with everything else fixed, by weighted least squares.
  void solve_block(const float* x, const float* weights) {
    double aa = 0, ac = 0, cc = 0, ax = 0, cx = 0;
    for (std::size_t i = 0; i < kSuper; ++i) {
      const double w = static_cast<double>(weights[i]);
      const double a = static_cast<double>(scales[i / kGroup] * q[i]);
      const double c = static_cast<double>(mins[i / kGroup]);
      const double value = static_cast<double>(x[i]);
      aa += w * a * a;
      ac += w * a * c;
      cc += w * c * c;
      ax += w * a * value;
      cx += w * c * value;
    }
    const double determinant = aa * cc - ac * ac;
    double new_scale = aa > 0 ? ax / aa : 0;
    double new_min = 0;
    if (determinant > 1e-12 * aa * cc) {
      new_scale = (ax * cc - ac * cx) / determinant;
      new_min = (ac * ax - aa * cx) / determinant;
    }
    if (new_scale > 0 && new_min >= 0) {
      scale = f32_to_f16(static_cast<float>(new_scale));
      min = f32_to_f16(static_cast<float>(new_min));
    }
  }

  void fit(const float* x) {
    std::array<float, kSuper> weights;
    std::array<Affine, kGroups> grids;
    float largest_scale = 0;
    float largest_min = 0;
    for (std::size_t g = 0; g < kGroups; ++g) {
      weigh(x + g * kGroup, kGroup, weights.data() + g * kGroup);
      grids[g] = fit_affine<kMax, kGroup, MinSign::not_negative>(x + g * kGroup, weights.data() + g * kGroup);
      largest_scale = std::max(largest_scale, grids[g].scale);
      largest_min = std::max(largest_min, grids[g].min);
    }
    scale = f16_scale(largest_scale / kScaleMax);
    min = f16_scale(largest_min / kScaleMax);
    for (std::size_t g = 0; g < kGroups; ++g) {
      scales[g] = nearest(grids[g].scale * inverse(f16_to_f32(scale)), 0, kScaleMax);
      mins[g] = nearest(grids[g].min * inverse(f16_to_f32(min)), 0, kScaleMax);
    }
    float error = refine_groups(x, weights.data());
    for (int round = 0; round < 2; ++round) {
      AffineBlock other = *this;
      other.solve_block(x, weights.data());
      const float other_error = other.refine_groups(x, weights.data());
      if (!(other_error < error)) break;
      *this = other;
      error = other_error;
    }
  }

  [[nodiscard]] std::uint32_t quant(std::size_t i) const { return static_cast<std::uint32_t>(q[i]); }
};

// A block of Q3_K, Q6_K or IQ4_XS before it is packed: x ~ scale * scales[g] * q, q one of the levels.
//
// Levels provides kElements per group; the range of group scales, from kScaleLow (negative, such as -128) to
// kScaleHigh; nearest_level(value) for four values; and fit(x, weights), the best scale of a group.
template <class Levels>
struct ScaledBlock {
  static constexpr std::size_t kElements = Levels::kElements;
  static constexpr std::size_t kGroups = kSuper / kElements;

  std::uint16_t scale = 0;  // F16
  std::array<float, kGroups> scales{};
  std::array<float, kSuper> q{};

  float refine_groups(const float* x, const float* weights) {
    float total = 0;
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float centre = scales[g];
      float best_error = -1;
      for (int i = 0; i < 3; ++i) {
        const float new_scale = centre + static_cast<float>((i + 1) % 3 - 1);
        if (new_scale < Levels::kScaleLow || new_scale > Levels::kScaleHigh) continue;
        const float step = f16_to_f32(scale) * new_scale;
        const float factor = inverse(step);
        std::array<float, kElements> candidate;
        const float error = sums_over<kElements, 1>([&](std::size_t j) -> std::array<Lanes, 1> {
          const Lanes value = load(x + g * kElements + j);
          const Lanes quant = Levels::nearest_level(value * factor);
          store(quant, candidate.data() + j);
          const Lanes difference = quant * step - value;
          return {load(weights + g * kElements + j) * difference * difference};
        })[0];
        if (best_error >= 0 && !(error < best_error)) continue;
        best_error = error;
        scales[g] = new_scale;
        std::copy(candidate.begin(), candidate.end(), q.begin() + static_cast<std::ptrdiff_t>(g * kElements));
      }
      total += best_error;
    }
    return total;
  }

  void solve_block(const float* x, const float* weights) {
    double product = 0;
    double square = 0;
    for (std::size_t i = 0; i < kSuper; ++i) {
      const double a = static_cast<double>(scales[i / kElements] * q[i]);
      product += static_cast<double>(weights[i]) * a * static_cast<double>(x[i]);
      square += static_cast<double>(weights[i]) * a * a;
    }
    if (square > 0) scale = f32_to_f16(static_cast<float>(product / square));
  }

  void fit(const float* x) {
    std::array<float, kSuper> weights;
    std::array<float, kGroups> steps;
    for (std::size_t g = 0; g < kGroups; ++g) {
      weigh(x + g * kElements, kElements, weights.data() + g * kElements);
      steps[g] = Levels::fit(x + g * kElements, weights.data() + g * kElements);
    }
    scale = f16_scale(extreme_of(steps.data(), kGroups) / Levels::kScaleLow);
    for (std::size_t g = 0; g < kGroups; ++g)
      scales[g] = nearest(steps[g] * inverse(f16_to_f32(scale)), Levels::kScaleLow, Levels::kScaleHigh);
    float error = refine_groups(x, weights.data());
    for (int round = 0; round < 2; ++round) {
      ScaledBlock other = *this;
      other.solve_block(x, weights.data());
      const float other_error = other.refine_groups(x, weights.data());
      if (!(other_error < error)) break;
      *this = other;
      error = other_error;
    }
  }
};

}  // namespace shunt::encoding
