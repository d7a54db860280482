// The rotation in double, shared by the scalar kernels of rotary and cache.
#pragma once

#include <cmath>
#include <cstddef>

#include "ops/elements.h"
#include "ops/rotary/rotary.h"

namespace shunt {

// Returns the radians per position of pair i. `factors` is null if there are none.
inline double rotary_frequency(const RotaryArgs& args, std::uint32_t i, const std::byte* factors) {
  const double frequency = std::pow(static_cast<double>(args.base), -2.0 * i / args.dims);
  if (args.has_factors == 0) return frequency;
  return frequency / load_element(DType::F32, factors, std::uint64_t{i} * args.factor_stride);
}

// Calls put(element, value) for each element of the head that begins at element `begin` of `x`.
template <class Put>
void rotate_head(const RotaryArgs& args, const std::byte* x, std::uint64_t begin, double position,
                 const std::byte* factors, Put put) {
  const auto element = [&](std::uint32_t i) {
    return load_element(static_cast<DType>(args.x.dtype), x, begin + std::uint64_t{i} * args.x.strides[3]);
  };
  for (std::uint32_t i = 0; i < args.dims / 2; ++i) {
    const double angle = position * rotary_frequency(args, i, factors);
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    const RotaryPair pair = rotary_pair(args, i);
    const double a = element(pair.first);
    const double b = element(pair.second);
    put(pair.first, a * cosine - b * sine);
    put(pair.second, a * sine + b * cosine);
  }
  for (std::uint32_t i = args.dims; i < args.x.extents[3]; ++i) put(i, element(i));
}

}  // namespace shunt
