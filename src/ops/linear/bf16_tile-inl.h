// linear in BF16 by matrix tiles, for many token rows. Included once per instruction set.
//
// Phase 1 rounds x to BF16 in strips of 32 token rows by 256 elements. In phase 2 each thread decodes and rounds a
// strip of the weight and multiplies it by those of all token rows, two by two tiles at a time. Sums are F32 and wait
// in memory between strips; no thread splits k, so results do not depend on how the weight's rows are shared.
//
// `Tiles` is a processor's unit, an object that holds eight tile registers of 16 rows of 64 bytes. It has
//   zero<tile>(), load<tile>(from, pitch), store<tile>(to, pitch)   with rows `pitch` bytes apart
//   multiply<sums, weight, x>()   adds the products of a tile of the weight and one of x to a tile of F32 sums
//   round(low, high)              static: two vectors in BF16, to nearest, ties to even
// It takes numbers below 2^-126 as zeros, whether it rounds, multiplies or sums them. Numbers that are not finite give
// the same infinities and NaN as in F32 if operands have one part, and NaN if they have two. What rounds past the
// largest number of BF16, 3.39e38, is infinite.
#if defined(SHUNT_OPS_BF16_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BF16_TILE_INL_H_
#undef SHUNT_OPS_BF16_TILE_INL_H_
#else
#define SHUNT_OPS_BF16_TILE_INL_H_
#endif

#include <algorithm>

#include "ops/linear/bf16_blocking.h"
#include "ops/linear/linear_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

using Bf16Vec = hn::Vec<hn::Repartition<std::uint16_t, BlockTag>>;
static_assert(kBlockRows % kBf16StripRows == 0 && kBatchRows % kBf16StripRows == 0);

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

// Rounds kMatrixTileElements neighbours of a row into row `row` of a half of all parts.
template <class Tiles, std::size_t kParts>
HWY_INLINE void round_step(const float* from, MatrixTile (*parts)[2], std::size_t half, std::size_t row) {
  const BlockTag d;
  const hn::Repartition<std::uint16_t, BlockTag> d16;
  for (std::size_t i = 0; i < kMatrixTileElements; i += 2 * kBlockLanes) {
    BlockVec low = hn::Load(d, from + i);
    BlockVec high = hn::Load(d, from + i + kBlockLanes);
    for (std::size_t part = 0; part < kParts; ++part) {
      const Bf16Vec rounded = Tiles::round(low, high);
      hn::Store(rounded, d16, parts[part][half] + row * kMatrixTileElements + i);
      if (part + 1 < kParts) subtract_rounded(rounded, low, high);
    }
  }
}

// Decodes a row of a strip. What its last step has beyond `elements` becomes zeros.
static HWY_NOINLINE HWY_MAYBE_UNUSED void decode_steps(DType dtype, const std::byte* row, std::size_t elements,
                                                       float* out) {
  decode_row_simd(dtype, row, elements, out);
  std::fill(out + elements, out + bf16_steps(elements) * kMatrixTileElements, 0.0F);
}

// Rounds `elements` of `count` rows into a half of a strip. `row_at(i)` is the first of these elements of row i. Rows
// from `count` on become zeros.
template <class Tiles, std::size_t kParts, class RowAt>
HWY_INLINE void fill_half(DType dtype, const RowAt& row_at, std::size_t count, std::size_t elements, std::size_t half,
                          Bf16Strip<kParts>& strip) {
  alignas(64) float decoded[kBf16Elements];
  for (std::size_t row = 0; row < kMatrixTileRows; ++row) {
    if (row < count) decode_steps(dtype, row_at(row), elements, decoded);
    if (row == count) std::fill(decoded, decoded + kBf16Elements, 0.0F);
    for (std::size_t step = 0; step < bf16_steps(elements); ++step)
      round_step<Tiles, kParts>(decoded + step * kMatrixTileElements, strip.tiles[step], half, row);
  }
}

// Transposes a tile as 16 x 16 pairs. Vectors of floats move the pairs; nothing computes with them.
HWY_INLINE void transpose_pairs(const MatrixTile& from, MatrixTile& to) {
  const Tag4 d4;
  const auto* const pairs = reinterpret_cast<const float*>(from);
  auto* const transposed = reinterpret_cast<float*>(to);
  for (std::size_t r = 0; r < kMatrixTileRows; r += 4)
    for (std::size_t c = 0; c < kMatrixTileRows; c += 4) {
      Vec4 v[4];
      for (std::size_t i = 0; i < 4; ++i) v[i] = hn::Load(d4, pairs + (r + i) * kMatrixTileRows + c);
      transpose4(v[0], v[1], v[2], v[3]);
      for (std::size_t i = 0; i < 4; ++i) hn::Store(v[i], d4, transposed + (c + i) * kMatrixTileRows + r);
    }
}

// Packs items of x (bf16_x_items): the part of 16 token rows in one block of k each. `row_at(t)` is token row t.
template <class Tiles, std::size_t kParts, class RowAt>
HWY_NOINLINE void pack_bf16(DType dtype, std::size_t k, const RowAt& row_at, const Bf16X<kParts>& x, Range items,
                            std::byte* scratch) {
  auto& rounded = *reinterpret_cast<Bf16Strip<kParts>*>(scratch);
  const std::size_t blocks = bf16_blocks(k);
  for (std::uint64_t item = items.begin; item < items.end; ++item) {
    const std::size_t first = item / blocks * kMatrixTileRows;
    const std::size_t half = item / blocks % 2;
    const std::size_t block = item % blocks;
    const std::size_t offset = block * kBf16Elements * info_of(dtype).block_bytes;
    const std::size_t elements = std::min(k - block * kBf16Elements, kBf16Elements);
    fill_half<Tiles>(
        dtype, [&](std::size_t row) { return row_at(first + row) + offset; }, x.rows - first, elements, half, rounded);
    Bf16Strip<kParts>& strip = x.strip(block, first / kBf16StripRows);
    for (std::size_t step = 0; step < bf16_steps(elements); ++step)
      for (std::size_t part = 0; part < kParts; ++part)
        transpose_pairs(rounded.tiles[step][part][half], strip.tiles[step][part][half]);
  }
}

// ---- Products

// Tile registers 0 to 3 hold the sums of weight half w and token half t in 2 w + t, 4 and 5 the halves of the weight, 6
// and 7 those of x. With one half of tokens, 1, 3 and 7 are idle.
inline constexpr std::size_t kTilePitch = kMatrixTileElements * sizeof(std::uint16_t);
inline constexpr std::size_t kTileSumPitch = kSumPitch * sizeof(float);

template <std::size_t kHalves, class Tiles>
HWY_INLINE void begin_sums(Tiles& tiles, const float* sums, bool is_first) {
  const float* const second = sums + kMatrixTileRows * kSumPitch;
  if (is_first) {
    tiles.template zero<0>();
    tiles.template zero<2>();
    if constexpr (kHalves == 2) tiles.template zero<1>();
    if constexpr (kHalves == 2) tiles.template zero<3>();
    return;
  }
  tiles.template load<0>(sums, kTileSumPitch);
  tiles.template load<2>(second, kTileSumPitch);
  if constexpr (kHalves == 2) tiles.template load<1>(sums + kMatrixTileRows, kTileSumPitch);
  if constexpr (kHalves == 2) tiles.template load<3>(second + kMatrixTileRows, kTileSumPitch);
}

template <std::size_t kHalves, class Tiles>
HWY_INLINE void end_sums(Tiles& tiles, float* sums) {
  float* const second = sums + kMatrixTileRows * kSumPitch;
  tiles.template store<0>(sums, kTileSumPitch);
  tiles.template store<2>(second, kTileSumPitch);
  if constexpr (kHalves == 2) tiles.template store<1>(sums + kMatrixTileRows, kTileSumPitch);
  if constexpr (kHalves == 2) tiles.template store<3>(second + kMatrixTileRows, kTileSumPitch);
}

// Loads and multiplies one part of the weight and one of x.
template <std::size_t kHalves, class Tiles>
HWY_INLINE void multiply_parts(Tiles& tiles, const MatrixTile* weight, const MatrixTile* x) {
  tiles.template load<4>(weight[0], kTilePitch);
  tiles.template load<6>(x[0], kTilePitch);
  tiles.template multiply<0, 4, 6>();
  if constexpr (kHalves == 2) tiles.template load<7>(x[1], kTilePitch);
  if constexpr (kHalves == 2) tiles.template multiply<1, 4, 7>();
  tiles.template load<5>(weight[1], kTilePitch);
  tiles.template multiply<2, 5, 6>();
  if constexpr (kHalves == 2) tiles.template multiply<3, 5, 7>();
}

// Multiplies the part of the weight that is loaded by another part of x.
template <std::size_t kHalves, class Tiles>
HWY_INLINE void multiply_loaded(Tiles& tiles, const MatrixTile* x) {
  tiles.template load<6>(x[0], kTilePitch);
  tiles.template multiply<0, 4, 6>();
  tiles.template multiply<2, 5, 6>();
  if constexpr (kHalves == 2) {
    tiles.template load<7>(x[1], kTilePitch);
    tiles.template multiply<1, 4, 7>();
    tiles.template multiply<3, 5, 7>();
  }
}

// Asks for the step of x that follows, which may be the first one of the next strip, or not there.
template <std::size_t kParts>
HWY_INLINE void prefetch_after(const MatrixTile (&step)[kParts][2]) {
  constexpr std::size_t kStepBytes = kParts * 2 * sizeof(MatrixTile);
  const auto* const next = reinterpret_cast<const std::byte*>(step) + kStepBytes;
  HWY_UNROLL(8) for (std::size_t at = 0; at < kStepBytes; at += 64) hwy::Prefetch(next + at);
}

// sums [kBf16StripRows][kSumPitch] (+)= a strip of the weight times kHalves halves of a strip of x.
template <std::size_t kHalves, class Tiles, std::size_t kWeightParts, std::size_t kXParts>
HWY_INLINE void multiply_strips(Tiles& tiles, const Bf16Strip<kWeightParts>& weight, const Bf16Strip<kXParts>& x,
                                std::size_t steps, bool is_first, float* sums) {
  begin_sums<kHalves>(tiles, sums, is_first);
  for (std::size_t step = 0; step < steps; ++step) {
    const auto& w = weight.tiles[step];
    const auto& v = x.tiles[step];
    if constexpr (kXParts == 1) prefetch_after(v);
    multiply_parts<kHalves>(tiles, w[0], v[0]);
    if constexpr (kXParts == 2) multiply_loaded<kHalves>(tiles, v[1]);
    if constexpr (kWeightParts == 2) multiply_parts<kHalves>(tiles, w[1], v[0]);
  }
  end_sums<kHalves>(tiles, sums);
}

template <std::size_t kXParts>
struct Bf16Batch {
  Bf16X<kXParts> x;
  const float* const* residual;  // per token row; null if there is none
  float* const* out;             // per token row
};

// Multiplies a strip of the weight by all token rows.
template <class Tiles, std::size_t kWeightParts, std::size_t kXParts>
HWY_INLINE void multiply_tokens(Tiles& tiles, const Bf16Strip<kWeightParts>& weight, const Bf16X<kXParts>& x,
                                std::size_t begin, std::size_t elements, float* sums) {
  const std::size_t steps = bf16_steps(elements);
  for (std::size_t t = 0; t < x.rows; t += kBf16StripRows) {
    const Bf16Strip<kXParts>& strip = x.strip(begin / kBf16Elements, t / kBf16StripRows);
    if (x.rows - t > kMatrixTileRows) {
      multiply_strips<2>(tiles, weight, strip, steps, begin == 0, sums + t);
    } else {
      multiply_strips<1>(tiles, weight, strip, steps, begin == 0, sums + t);
    }
  }
}

// Computes the weight rows of `range`. REQUIRES: k > 0.
template <class Tiles, std::size_t kWeightParts, std::size_t kXParts>
HWY_NOINLINE void multiply_bf16(const LinearArgs& args, const std::byte* weight, const Bf16Batch<kXParts>& batch,
                                Range range, std::byte* scratch) {
  const auto dtype = static_cast<DType>(args.weight_dtype);
  const DTypeInfo& info = info_of(dtype);
  auto& strip = *reinterpret_cast<Bf16Strip<kWeightParts>*>(scratch);
  auto* const sums = reinterpret_cast<float*>(scratch + sizeof(strip));
  Tiles tiles;
  for (std::uint64_t r = range.begin; r < range.end; r += kBlockRows) {
    const std::size_t count = std::min<std::uint64_t>(range.end - r, kBlockRows);
    for (std::size_t begin = 0; begin < args.k; begin += kBf16Elements) {
      const std::size_t elements = std::min(args.k - begin, kBf16Elements);
      const std::byte* const from = weight + r * args.weight_row_bytes + begin / info.block_elements * info.block_bytes;
      for (std::size_t i = 0; i < count; i += kBf16StripRows) {
        for (std::size_t half = 0; half < 2; ++half) {
          const std::size_t first = i + half * kMatrixTileRows;
          const auto row_at = [&](std::size_t row) { return from + (first + row) * args.weight_row_bytes; };
          fill_half<Tiles>(dtype, row_at, first < count ? count - first : 0, elements, half, strip);
        }
        multiply_tokens(tiles, strip, batch.x, begin, elements, sums + i * kSumPitch);
      }
    }
    store_sums({nullptr, batch.x.rows, batch.residual, batch.out}, sums, r, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
