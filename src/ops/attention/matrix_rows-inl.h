// Attention's products of many rows by matrix tiles of BF16, each number in two parts; compiled once per instruction
// set.
//
// Scores [keys, rows] = keys [keys, dim] queries [dim, rows], and sums [dim, rows] += values [dim, keys] weights [keys,
// rows]: what comes from the cache is the left operand, and is rounded once for all rows that share it. Included by
// rows-inl.h.
#if defined(SHUNT_OPS_ATTENTION_MATRIX_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_ATTENTION_MATRIX_ROWS_INL_H_
#undef SHUNT_OPS_ATTENTION_MATRIX_ROWS_INL_H_
#else
#define SHUNT_OPS_ATTENTION_MATRIX_ROWS_INL_H_
#endif

#include <span>

#include "ops/attention/tile-inl.h"
#include "ops/attention/tile.h"
#include "ops/matrix_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace tiles {

using Step = MatrixStep<2>;
inline constexpr std::size_t kStepKeys = kMatrixTileElements;
inline constexpr std::size_t kKeySteps = kTileKeys / kStepKeys;
static_assert(kTileKeys % kStepKeys == 0 && kStepKeys == kMatrixRows && kBlockLanes == hn::MaxLanes(Floats()));

// Loads two neighbouring vectors of a head in the cache.
template <class Load>
HWY_INLINE void load_two(const std::byte* head, std::size_t i, BlockVec& low, BlockVec& high) {
  constexpr std::size_t kTogether = Load::kVectors * kBlockLanes;
  const Load load;
  low = load(head, i / kTogether * kTogether, i % kTogether / kBlockLanes);
  const std::size_t next = i + kBlockLanes;
  high = load(head, next / kTogether * kTogether, next % kTogether / kBlockLanes);
}

// Packs the head at an offset of keys as a left operand, from the step that `begin` lies in on, to `to` [kKeySteps of
// 32 keys][dim / 32].
template <class Tiles, class Load>
HWY_NOINLINE void pack_keys(std::span<const std::byte* const> keys, std::size_t begin, std::size_t offset,
                            std::size_t dim, Step* to) {
  const std::size_t steps = dim / kMatrixTileElements;
  for (std::size_t key = begin / kStepKeys * kStepKeys; key < keys.size(); ++key)
    for (std::size_t i = 0; i < dim; i += 2 * kBlockLanes) {
      BlockVec low;
      BlockVec high;
      load_two<Load>(keys[key] + offset, i, low, high);
      round_vectors<Tiles, 2>(low, high, to[key / kMatrixRows * steps + i / kMatrixTileElements],
                              key / kMatrixTileRows % 2, key % kMatrixTileRows, i % kMatrixTileElements);
    }
}

// Packs the transpose of values from `begin` on as a left operand, to `to` [dim / 32][kKeySteps]. What the first step
// has before them, and the last one after them, becomes zeros: weights of zero do not hide numbers that are not finite.
template <class Tiles, class Load>
HWY_NOINLINE void pack_values(std::span<const std::byte* const> values, std::size_t begin, std::size_t offset,
                              std::size_t dim, Step* to) {
  const BlockTag d;
  alignas(64) float rows[kStepKeys][kMatrixRows];
  alignas(64) float columns[kMatrixRows][kStepKeys];
  for (std::size_t first = begin / kStepKeys * kStepKeys; first < values.size(); first += kStepKeys)
    for (std::size_t column = 0; column < dim; column += kMatrixRows) {
      for (std::size_t key = first; key < first + kStepKeys; ++key)
        for (std::size_t i = 0; i < kMatrixRows; i += 2 * kBlockLanes) {
          BlockVec low = hn::Zero(d);
          BlockVec high = low;
          if (key >= begin && key < values.size()) load_two<Load>(values[key] + offset, column + i, low, high);
          hn::Store(low, d, rows[key - first] + i);
          hn::Store(high, d, rows[key - first] + i + kBlockLanes);
        }
      transpose(rows[0], kMatrixRows, kStepKeys, kMatrixRows, columns[0], kStepKeys);
      Step& step = to[column / kMatrixRows * kKeySteps + first / kStepKeys];
      for (std::size_t row = 0; row < kMatrixRows; ++row)
        round_step<Tiles, 2>(columns[row], step, row / kMatrixTileRows, row % kMatrixTileRows);
    }
}

// Packs kMatrixRows queries [row][dim] as a right operand, to `to` [dim / 32]. Rows past `count` become zeros.
template <class Tiles>
HWY_NOINLINE void pack_queries(const float* queries, std::size_t count, std::size_t dim, Step* to) {
  alignas(64) const float zeros[kMatrixTileElements] = {};
  alignas(64) Step rounded;
  for (std::size_t i = 0; i < dim; i += kMatrixTileElements) {
    for (std::size_t row = 0; row < kMatrixRows; ++row)
      round_step<Tiles, 2>(row < count ? queries + row * dim + i : zeros, rounded, row / kMatrixTileRows,
                           row % kMatrixTileRows);
    for (std::size_t part = 0; part < 2; ++part)
      for (std::size_t half = 0; half < 2; ++half)
        transpose_pairs(rounded[part][half], to[i / kMatrixTileElements][part][half]);
  }
}

// Returns the pairs of elements of the two vectors that were rounded together.
HWY_INLINE Bf16Vec pairs_of(Bf16Vec rounded) {
  const hn::Repartition<std::uint16_t, BlockTag> d16;
  const hn::Repartition<std::uint32_t, BlockTag> d32;
  const hn::Half<decltype(d16)> half;
  const auto low = hn::PromoteTo(d32, hn::LowerHalf(half, rounded));
  const auto high = hn::PromoteTo(d32, hn::UpperHalf(half, rounded));
  return hn::BitCast(d16, hn::Or(low, hn::ShiftLeft<16>(high)));
}

// Packs the weights [kTileKeys][kSlabRows] of whole steps as a right operand of kHalves halves, to `to` [kKeySteps].
template <std::size_t kHalves, class Tiles>
HWY_NOINLINE void pack_weights(const float* weights, std::size_t begin, std::size_t end, Step* to) {
  const BlockTag d;
  const hn::Repartition<std::uint16_t, BlockTag> d16;
  for (std::size_t key = begin; key < end; key += 2) {
    Step& step = to[key / kStepKeys];
    for (std::size_t row = 0; row < kHalves * kMatrixTileRows; row += kBlockLanes) {
      BlockVec first = hn::Load(d, weights + key * kSlabRows + row);
      BlockVec second = hn::Load(d, weights + (key + 1) * kSlabRows + row);
      const std::size_t at = key % kStepKeys / 2 * kMatrixTileElements + 2 * (row % kMatrixTileRows);
      for (std::size_t part = 0; part < 2; ++part) {
        const Bf16Vec rounded = Tiles::round(first, second);
        hn::Store(pairs_of(rounded), d16, step[part][row / kMatrixTileRows] + at);
        if (part == 0) subtract_rounded(rounded, first, second);
      }
    }
  }
}

// out [kMatrixRows][kSlabRows] = the product of some steps of both operands; of the right one, the first kHalves
// halves.
template <std::size_t kHalves, class Tiles>
HWY_INLINE void multiply_steps(Tiles& tiles, const Step* left, const Step* right, std::size_t steps, float* out,
                               std::size_t pitch) {
  clear_tiles<kHalves>(tiles);
  for (std::size_t step = 0; step < steps; ++step) multiply_step<kHalves>(tiles, left[step], right[step]);
  store_tiles<kHalves>(tiles, out, pitch);
}

// sums [kMatrixRows][kMatrixRows] = sums shrinks + product [kMatrixRows][kMatrixRows], of kHalves halves of the rows.
template <std::size_t kHalves>
HWY_INLINE void add_product(const float* HWY_RESTRICT shrinks, const float* HWY_RESTRICT product,
                            float* HWY_RESTRICT sums) {
  const BlockTag d;
  for (std::size_t row = 0; row < kHalves * kMatrixTileRows; row += kBlockLanes) {
    const auto shrink = hn::LoadU(d, shrinks + row);
    for (std::size_t i = 0; i < kMatrixRows; ++i) {
      float* const to = sums + i * kMatrixRows + row;
      hn::Store(hn::MulAdd(hn::Load(d, to), shrink, hn::Load(d, product + i * kMatrixRows + row)), d, to);
    }
  }
}

}  // namespace tiles
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
