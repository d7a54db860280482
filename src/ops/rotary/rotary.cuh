// Rotates pairs, for rotary and cache. A pair's turns per position are a fraction of a full turn in 64-bit fixed point
// (rotary/turns.h). In double, large positions lose nothing that a float would show.
#pragma once

#include "ops/kernel.cuh"
#include "ops/rotary/rotary_args.h"

namespace shunt {

struct Rotation {
  float cosine;
  float sine;
};

// Returns the cosine and sine of this many full turns.
SHUNT_FUNCTION Rotation rotation(double turns) {
  double fraction = turns - static_cast<double>(static_cast<std::int64_t>(turns));
  if (fraction < 0.0) fraction += 1.0;
  const auto quadrant = static_cast<std::uint32_t>(fraction * 8.0 + 1.0) / 2U;  // the nearest
  const auto x = static_cast<float>((fraction - 0.25 * static_cast<double>(quadrant)) * 6.283185307179586);
  const float square = x * x;
  const float sine =
      x * (1.0F + square * (-1.0F / 6.0F +
                            square * (1.0F / 120.0F + square * (-1.0F / 5040.0F + square * (1.0F / 362880.0F)))));
  const float cosine =
      1.0F + square * (-0.5F + square * (1.0F / 24.0F + square * (-1.0F / 720.0F + square * (1.0F / 40320.0F))));
  switch (quadrant & 3U) {
    case 0U:
      return {cosine, sine};
    case 1U:
      return {-sine, cosine};
    case 2U:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

// Returns how pair `number` turns at a position. `turns` are the call's constants; `factors` may be null.
SHUNT_FUNCTION Rotation rotation_of_pair(const RotaryArgs& args, std::uint32_t number, std::int32_t position,
                                         const std::uint32_t* turns, const float* factors) {
  const std::uint64_t at = std::uint64_t{number} * 2;
  double turn = (static_cast<double>(turns[at]) + static_cast<double>(turns[at + 1]) * 0x1p-32) * 0x1p-32;
  if (factors != nullptr) turn /= static_cast<double>(factors[std::uint64_t{number} * args.factor_stride]);
  return rotation(turn * static_cast<double>(position));
}

// Returns element i of the head of x that begins at `begin`, rotated for `position`.
SHUNT_FUNCTION float rotated(const RotaryArgs& args, const void* x, std::uint64_t begin, std::uint32_t i,
                             std::int32_t position, const std::uint32_t* turns, const float* factors) {
  const auto element = [&](std::uint32_t at) {
    return load(args.x.dtype, x, begin + std::uint64_t{at} * args.x.strides[3]);
  };
  if (i >= args.dims) return element(i);
  const std::uint32_t half = args.dims / 2U;
  const std::uint32_t number = args.halves != 0 ? i % half : i / 2U;
  const RotaryPair pair = rotary_pair(args, number);
  const Rotation by = rotation_of_pair(args, number, position, turns, factors);
  const float first = element(pair.first);
  const float second = element(pair.second);
  return i == pair.first ? first * by.cosine - second * by.sine : first * by.sine + second * by.cosine;
}

}  // namespace shunt
