// Products of matrices in BF16 by matrix tiles. Included once per instruction set.
//
// `Tiles` is a processor's unit, an object that holds eight tile registers of 16 rows of 64 bytes. It has
//   zero<tile>(), load<tile>(from, pitch), store<tile>(to, pitch)   with rows `pitch` bytes apart
//   multiply<sums, left, right>()   adds the products of two operands to a tile of F32 sums
//   round(low, high)              static: two vectors in BF16, to nearest, ties to even
// It takes numbers below 2^-126 as zeros, whether it rounds, multiplies or sums them. Numbers that are not finite give
// the same infinities and NaN as in F32 if operands have one part, and NaN if they have two. What rounds past the
// largest number of BF16, 3.39e38, is infinite.
#if defined(SHUNT_OPS_MATRIX_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_MATRIX_TILES_INL_H_
#undef SHUNT_OPS_MATRIX_TILES_INL_H_
#else
#define SHUNT_OPS_MATRIX_TILES_INL_H_
#endif

#include "ops/matrix_tiles.h"
#include "ops/quantize/block_vectors-inl.h"
#include "ops/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

using Bf16Vec = hn::Vec<hn::Repartition<std::uint16_t, BlockTag>>;

// ---- Rounding

// Returns what two vectors lack when they are rounded to `rounded`.
HWY_INLINE void subtract_rounded(Bf16Vec rounded, BlockVec& low, BlockVec& high) {
  const BlockTag d;
  const hn::Repartition<std::uint32_t, BlockTag> d32;
  const hn::Half<hn::Repartition<std::uint16_t, BlockTag>> half;
  const auto widen = [&](auto v) { return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, v))); };
  low = hn::Sub(low, widen(hn::LowerHalf(half, rounded)));
  high = hn::Sub(high, widen(hn::UpperHalf(half, rounded)));
}

// Rounds two vectors of a row of a left operand's half, its elements from `at` on.
template <class Tiles, std::size_t kParts>
HWY_INLINE void round_vectors(BlockVec low, BlockVec high, MatrixStep<kParts>& step, std::size_t half, std::size_t row,
                              std::size_t at) {
  const hn::Repartition<std::uint16_t, BlockTag> d16;
  for (std::size_t part = 0; part < kParts; ++part) {
    const Bf16Vec rounded = Tiles::round(low, high);
    hn::Store(rounded, d16, step[part][half] + row * kMatrixTileElements + at);
    if (part + 1 < kParts) subtract_rounded(rounded, low, high);
  }
}

// Rounds kMatrixTileElements neighbours of F32 in the same way.
template <class Tiles, std::size_t kParts>
HWY_INLINE void round_step(const float* from, MatrixStep<kParts>& step, std::size_t half, std::size_t row) {
  const BlockTag d;
  for (std::size_t at = 0; at < kMatrixTileElements; at += 2 * kBlockLanes)
    round_vectors<Tiles, kParts>(hn::Load(d, from + at), hn::Load(d, from + at + kBlockLanes), step, half, row, at);
}

// Turns a tile of a left operand into one of a right operand. Vectors of floats move the pairs; nothing computes with
// them.
HWY_INLINE void transpose_pairs(const MatrixTile& from, MatrixTile& to) {
  transpose(reinterpret_cast<const float*>(from), kMatrixTileRows, kMatrixTileRows, kMatrixTileRows,
            reinterpret_cast<float*>(to), kMatrixTileRows);
}

// ---- Products

// Tile registers 0 to 3 hold the sums of left half l and right half r in 2 l + r, 4 and 5 the halves of the left
// operand, 6 and 7 those of the right one. With one half of the right one, 1, 3 and 7 are idle.
inline constexpr std::size_t kTilePitch = kMatrixTileElements * sizeof(std::uint16_t);

template <std::size_t kHalves, class Tiles>
HWY_INLINE void clear_tiles(Tiles& tiles) {
  tiles.template zero<0>();
  tiles.template zero<2>();
  if constexpr (kHalves == 2) tiles.template zero<1>();
  if constexpr (kHalves == 2) tiles.template zero<3>();
}

// Loads sums [32 rows], which are `pitch` floats apart, or stores them.
template <std::size_t kHalves, class Tiles>
HWY_INLINE void load_tiles(Tiles& tiles, const float* sums, std::size_t pitch) {
  const float* const second = sums + kMatrixTileRows * pitch;
  tiles.template load<0>(sums, pitch * sizeof(float));
  tiles.template load<2>(second, pitch * sizeof(float));
  if constexpr (kHalves == 2) tiles.template load<1>(sums + kMatrixTileRows, pitch * sizeof(float));
  if constexpr (kHalves == 2) tiles.template load<3>(second + kMatrixTileRows, pitch * sizeof(float));
}
template <std::size_t kHalves, class Tiles>
HWY_INLINE void store_tiles(Tiles& tiles, float* sums, std::size_t pitch) {
  float* const second = sums + kMatrixTileRows * pitch;
  tiles.template store<0>(sums, pitch * sizeof(float));
  tiles.template store<2>(second, pitch * sizeof(float));
  if constexpr (kHalves == 2) tiles.template store<1>(sums + kMatrixTileRows, pitch * sizeof(float));
  if constexpr (kHalves == 2) tiles.template store<3>(second + kMatrixTileRows, pitch * sizeof(float));
}

// Loads and multiplies one part of the left operand and one of the right one.
template <std::size_t kHalves, class Tiles>
HWY_INLINE void multiply_parts(Tiles& tiles, const MatrixTile* left, const MatrixTile* right) {
  tiles.template load<4>(left[0], kTilePitch);
  tiles.template load<6>(right[0], kTilePitch);
  tiles.template multiply<0, 4, 6>();
  if constexpr (kHalves == 2) tiles.template load<7>(right[1], kTilePitch);
  if constexpr (kHalves == 2) tiles.template multiply<1, 4, 7>();
  tiles.template load<5>(left[1], kTilePitch);
  tiles.template multiply<2, 5, 6>();
  if constexpr (kHalves == 2) tiles.template multiply<3, 5, 7>();
}

// Multiplies the part of the left operand that is loaded by another part of the right one.
template <std::size_t kHalves, class Tiles>
HWY_INLINE void multiply_loaded(Tiles& tiles, const MatrixTile* right) {
  tiles.template load<6>(right[0], kTilePitch);
  tiles.template multiply<0, 4, 6>();
  tiles.template multiply<2, 5, 6>();
  if constexpr (kHalves == 2) {
    tiles.template load<7>(right[1], kTilePitch);
    tiles.template multiply<1, 4, 7>();
    tiles.template multiply<3, 5, 7>();
  }
}

// Multiplies a step of both operands. Of two parts each, the two small ones are not multiplied.
template <std::size_t kHalves, class Tiles, std::size_t kLeftParts, std::size_t kRightParts>
HWY_INLINE void multiply_step(Tiles& tiles, const MatrixTile (&left)[kLeftParts][2],
                              const MatrixTile (&right)[kRightParts][2]) {
  multiply_parts<kHalves>(tiles, left[0], right[0]);
  if constexpr (kRightParts == 2) multiply_loaded<kHalves>(tiles, right[1]);
  if constexpr (kLeftParts == 2) multiply_parts<kHalves>(tiles, left[1], right[0]);
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
