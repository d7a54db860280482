// linear in BF16 by matrix tiles, for many token rows. Included once per instruction set.
//
// Phase 1 rounds x to BF16 in strips of 32 token rows by 256 elements. In phase 2 each thread decodes and rounds a
// strip of the weight and multiplies it by those of all token rows, two by two tiles at a time. Sums are F32 and wait
// in memory between strips; no thread splits k, so results do not depend on how the weight's rows are shared.
#if defined(SHUNT_OPS_BF16_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BF16_TILE_INL_H_
#undef SHUNT_OPS_BF16_TILE_INL_H_
#else
#define SHUNT_OPS_BF16_TILE_INL_H_
#endif

#include <algorithm>

#include "ops/linear/bf16_blocking.h"
#include "ops/linear/linear_tile-inl.h"
#include "ops/matrix_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

static_assert(kBlockRows % kBf16StripRows == 0 && kBatchRows % kBf16StripRows == 0);

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
      round_step<Tiles, kParts>(decoded + step * kMatrixTileElements, strip.steps[step], half, row);
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
        transpose_pairs(rounded.steps[step][part][half], strip.steps[step][part][half]);
  }
}

// ---- Products

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
  if (is_first)
    clear_tiles<kHalves>(tiles);
  else
    load_tiles<kHalves>(tiles, sums, kSumPitch);
  for (std::size_t step = 0; step < steps; ++step) {
    const auto& w = weight.steps[step];
    const auto& v = x.steps[step];
    if constexpr (kXParts == 1) prefetch_after(v);
    multiply_step<kHalves>(tiles, w, v);
  }
  store_tiles<kHalves>(tiles, sums, kSumPitch);
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
