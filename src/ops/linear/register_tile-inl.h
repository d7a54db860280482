// A matrix product held in registers: kTileRows rows of F32 weights times up to two vectors of packed columns. Included
// by the _simd.cpp files of several families, once per instruction set.
#if defined(SHUNT_OPS_REGISTER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_REGISTER_TILE_INL_H_
#undef SHUNT_OPS_REGISTER_TILE_INL_H_
#else
#define SHUNT_OPS_REGISTER_TILE_INL_H_
#endif

#include "ops/linear/linear_blocking.h"
#include "ops/quantize/block_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// 12 x 2 sums, 2 vectors of x and a weight take 27 of 32 registers; 6 x 2 sums take 15 of 16.
inline constexpr std::size_t kTileRows = HWY_CAP_GE512 || HWY_TARGET == HWY_NEON ? 12 : 6;
inline constexpr std::size_t kTileTokens = 2 * kBlockLanes;
static_assert(kBlockRows % kTileRows == 0 && kPanelRows % kTileTokens == 0);

// sums[r][t] (+)= weights[r][i] * x_at(i)[t], for kRows rows and kVectors vectors of t.
template <std::size_t kRows, std::size_t kVectors, class XAt>
HWY_INLINE void sum_tile(const float* HWY_RESTRICT weights, const XAt& x_at, std::size_t elements, bool first,
                         float* HWY_RESTRICT sums) {
  const BlockTag d;
  BlockVec acc[kRows][kVectors];
  HWY_UNROLL(12) for (std::size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(d);
  }
  for (std::size_t i = 0; i < elements; ++i) {
    const float* const from = x_at(i);
    BlockVec x[kVectors];
    HWY_UNROLL(2) for (std::size_t v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, from + v * kBlockLanes);
    HWY_UNROLL(12) for (std::size_t r = 0; r < kRows; ++r) {
      const BlockVec w = hn::Set(d, weights[r * kTileElements + i]);
      HWY_UNROLL(2) for (std::size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(w, x[v], acc[r][v]);
    }
  }
  HWY_UNROLL(12) for (std::size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < kVectors; ++v) {
      // Each strip is summed separately: shorter chains of additions have smaller errors.
      float* const sum = sums + r * kSumPitch + v * kBlockLanes;
      hn::Store(first ? acc[r][v] : hn::Add(acc[r][v], hn::Load(d, sum)), d, sum);
    }
  }
}

// The same with a panel for x: x_at(i) is panel[i].
template <std::size_t kVectors>
HWY_NOINLINE void tile(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT panel, std::size_t elements,
                       bool first, float* HWY_RESTRICT sums) {
  sum_tile<kTileRows, kVectors>(weights, [&](std::size_t i) { return panel + i * kPanelRows; }, elements, first, sums);
}

// Multiplies elements begin .. begin + elements - 1 of a block of decoded weight rows [weight_rows][kTileElements] by
// those of all `tokens` columns of `panels` [panels][k][kPanelRows]. Also reads weight rows up to the next multiple of
// kTileRows.
HWY_INLINE void tile_strip(const float* panels, std::size_t k, std::size_t tokens, const float* weights,
                           std::size_t weight_rows, std::size_t begin, std::size_t elements, float* sums) {
  for (std::size_t t = 0; t < tokens; t += kTileTokens) {
    const float* panel = panels + (t / kPanelRows * k + begin) * kPanelRows + t % kPanelRows;
    const bool narrow = tokens - t <= kBlockLanes;
    for (std::size_t r = 0; r < weight_rows; r += kTileRows) {
      const float* w = weights + r * kTileElements;
      float* const s = sums + r * kSumPitch + t;
      if (narrow) {
        tile<1>(w, panel, elements, begin == 0, s);
      } else {
        tile<2>(w, panel, elements, begin == 0, s);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
