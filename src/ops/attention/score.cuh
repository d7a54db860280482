// Scores of attention in base 2, for the kernels that multiply queries and keys on tensor cores.
//
// A query row is scaled by a power of two, so that its largest element lies between 2^11 and 2^12. As the sum of
// several 16-bit numbers, which pair_of() makes without an overflow, it then loses nothing that matters: two halves
// keep 22 bits. Weights are 2^(score - largest score + kWeightBits) for the same reason.
#pragma once

#include "ops/attention/attention_args.h"
#include "ops/warp_product.cuh"

namespace shunt::attention {

inline constexpr float kLeast = -3.4028234e38F;  // the score of what is not seen
inline constexpr float kLog2OfE = 1.44269504F;
inline constexpr float kWeightBits = 12.0F;
inline constexpr float kSinkWeight = 4096.0F;  // of the largest score

// Returns n such that 2^-n scales a row with this largest magnitude.
SHUNT_FUNCTION std::int32_t query_exponent(float largest) {
  const auto exponent = static_cast<std::int32_t>(kernel_math::bits_of(largest) >> 23U) - 127;
  return (exponent < -110 ? -110 : exponent) - 11;
}

// How products of scaled queries and keys become scores.
struct Scoring {
  float scale;
  float cap;  // 0: none

  SHUNT_FUNCTION explicit Scoring(const AttentionArgs& args)
      : scale(args.soft_cap > 0.0F ? args.scale / args.soft_cap : args.scale * kLog2OfE),
        cap(args.soft_cap > 0.0F ? args.soft_cap * kLog2OfE : 0.0F) {}

  // Returns the factor of a row for set().
  SHUNT_FUNCTION float factor(std::int32_t exponent) const { return scale * kernel_math::power_of_two(exponent); }

  // Turns products into scores. In each four, the first two are of one row and the others of another.
  template <std::uint32_t fours>
  SHUNT_FUNCTION void set(float (&products)[fours][4], const float (&factors)[2]) const;
};

// The hyperbolic tangent, within 3e-7 of its value.
SHUNT_FUNCTION float tanh(float x) {
  const float size = kernel_math::abs(x);
  const float square = x * x;
  float sum = -1382.0F / 155925.0F;
  sum = sum * square + 62.0F / 2835.0F;
  sum = sum * square - 17.0F / 315.0F;
  sum = sum * square + 2.0F / 15.0F;
  sum = sum * square - 1.0F / 3.0F;
  const float small = size + size * square * sum;
  const float large = 1.0F - 2.0F * kernel_math::reciprocal(kernel_math::exp2(size * 2.0F * kLog2OfE) + 1.0F);
  const float value = size < 0.4F ? small : large;
  return x < 0.0F ? -value : value;
}

template <std::uint32_t fours>
SHUNT_FUNCTION void Scoring::set(float (&products)[fours][4], const float (&factors)[2]) const {
  SHUNT_UNROLL
  for (std::uint32_t n = 0; n < fours; ++n) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) products[n][i] *= factors[i / 2];
  }
  if (cap == 0.0F) return;
  SHUNT_UNROLL
  for (std::uint32_t n = 0; n < fours; ++n) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) products[n][i] = cap * tanh(products[n][i]);
  }
}

// Returns the score of the head's sink, or kLeast if there is none.
SHUNT_FUNCTION float sink_score(const CudaCall* call, const AttentionArgs& args, std::uint32_t head) {
  if (args.has_sinks == 0) return kLeast;
  const float sink = input_of<float>(call, 6)[std::uint64_t{head} * args.sink_stride];
  return sink > kLeast ? sink * kLog2OfE : kLeast;
}

// The positions that a token sees: from `first` to `end` - 1.
struct Visible {
  std::uint32_t first;
  std::uint32_t end;
};
SHUNT_FUNCTION Visible visible_of(const AttentionArgs& args, std::int32_t sequence, std::int32_t position) {
  const auto end = static_cast<std::uint32_t>(visible_positions(args.table, sequence, position));
  const auto first = static_cast<std::uint32_t>(first_position(args, position));
  return first < end ? Visible{first, end} : Visible{0, 0};
}

// The sum of `parts` 16-bit numbers that two neighbours of a row are, or are nearest to.
template <std::uint32_t of, std::uint32_t parts>
struct Pairs {
  std::uint32_t words[parts];

  SHUNT_FUNCTION void set(float low, float high) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < parts; ++i) {
      words[i] = pair_of<of>(low, high);
      low -= low_of<of>(words[i]);
      high -= high_of<of>(words[i]);
    }
  }
};

}  // namespace shunt::attention
