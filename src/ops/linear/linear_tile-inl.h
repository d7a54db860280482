// linear for many token rows. Vectors run along the token rows. Included by row_products_simd.cpp, once per instruction
// set.
//
// Phase 1 packs x into panels [k][kPanelRows], widened and transposed; rows past the last are zero. In phase 2 each
// thread decodes a block of weight rows, kTileElements of k at a time, and multiplies it by every panel
// (register_tile-inl.h). Finally the sums [weight row][token row] are transposed into the result.
#if defined(SHUNT_OPS_MATMUL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_MATMUL_TILE_INL_H_
#undef SHUNT_OPS_MATMUL_TILE_INL_H_
#else
#define SHUNT_OPS_MATMUL_TILE_INL_H_
#endif

#include "ops/kernel.h"
#include "ops/linear/linear.h"
#include "ops/linear/register_tile-inl.h"
#include "ops/quantize/blocks_simd-inl.h"
#include "ops/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

template <DType kDType>
HWY_INLINE Vec4 load4(const std::byte* row, std::size_t i) {
  const Tag4 d4;
  if constexpr (kDType == DType::F16) return load_f16(d4, row + 2 * i);
  if constexpr (kDType == DType::BF16) return load_bf16(d4, row + 2 * i);
  return hn::LoadU(d4, reinterpret_cast<const float*>(row + 4 * i));
}

// Packs elements begin .. end - 1 of four token rows into columns 0 .. 3 of `panel`. Rows from `count` on become zeros.
template <DType kDType>
HWY_INLINE void pack4(const std::byte* const* rows, std::size_t count, Range elements, float* panel) {
  const Tag4 d4;
  std::size_t i = elements.begin;
  for (; i + 4 <= elements.end; i += 4) {
    Vec4 v[4];
    for (std::size_t t = 0; t < 4; ++t) v[t] = t < count ? load4<kDType>(rows[t], i) : hn::Zero(d4);
    transpose4(v[0], v[1], v[2], v[3]);
    for (std::size_t e = 0; e < 4; ++e) hn::Store(v[e], d4, panel + (i + e) * kPanelRows);
  }
  for (; i < elements.end; ++i)
    for (std::size_t t = 0; t < 4; ++t) {
      float value = 0;
      if (t < count) decode_row(kDType, rows[t] + i * (kDType == DType::F32 ? 4 : 2), 1, &value);
      panel[i * kPanelRows + t] = value;
    }
}

// Packs the elements of one panel. `rows` holds the starts of its `count` <= kPanelRows token rows.
static HWY_NOINLINE HWY_MAYBE_UNUSED void pack_panel(DType dtype, const std::byte* const* rows, std::size_t count,
                                                     Range elements, float* panel) {
  for (std::size_t t = 0; t < kPanelRows; t += 4) {
    const std::size_t there = t < count ? HWY_MIN(count - t, std::size_t{4}) : 0;
    if (dtype == DType::F16) pack4<DType::F16>(rows + t, there, elements, panel + t);
    if (dtype == DType::BF16) pack4<DType::BF16>(rows + t, there, elements, panel + t);
    if (dtype == DType::F32) pack4<DType::F32>(rows + t, there, elements, panel + t);
  }
}

// Source and destination of a batch of token rows.
struct TileBatch {
  const float* panels;           // [panels][k][kPanelRows]
  std::size_t rows;              // <= kBatchRows
  const float* const* residual;  // per token row; null if there is none
  float* const* out;             // per token row
};

// sums [weight_rows][kSumPitch] -> out[t][first + r], with the residual.
static HWY_NOINLINE void store_sums(const TileBatch& batch, const float* sums, std::size_t first,
                                    std::size_t weight_rows) {
  const Tag4 d4;
  const std::size_t whole_rows = weight_rows / 4 * 4;
  for (std::size_t t = 0; t < batch.rows; t += 4) {
    const std::size_t tokens = HWY_MIN(batch.rows - t, std::size_t{4});
    for (std::size_t r = 0; r < whole_rows; r += 4) {
      Vec4 v[4];
      for (std::size_t i = 0; i < 4; ++i) v[i] = hn::LoadU(d4, sums + (r + i) * kSumPitch + t);
      transpose4(v[0], v[1], v[2], v[3]);
      for (std::size_t i = 0; i < tokens; ++i) {
        const float* const residual = batch.residual[t + i];
        if (residual != nullptr) v[i] = hn::Add(v[i], hn::LoadU(d4, residual + first + r));
        hn::StoreU(v[i], d4, batch.out[t + i] + first + r);
      }
    }
    for (std::size_t r = whole_rows; r < weight_rows; ++r)
      for (std::size_t i = 0; i < tokens; ++i) {
        const float* const residual = batch.residual[t + i];
        batch.out[t + i][first + r] = sums[r * kSumPitch + t + i] + (residual != nullptr ? residual[first + r] : 0);
      }
  }
}

// Computes the weight rows of `range`. `scratch` holds kBlockRows strips of weights and kBlockRows rows of sums.
static HWY_NOINLINE HWY_MAYBE_UNUSED void tile_rows(const LinearArgs& args, const std::byte* weight,
                                                    const TileBatch& batch, Range range, float* scratch) {
  const auto dtype = static_cast<DType>(args.weight_dtype);
  const DTypeInfo& info = info_of(dtype);
  float* const sums = scratch + kBlockRows * kTileElements;
  for (std::uint64_t r = range.begin; r < range.end; r += kBlockRows) {
    const std::size_t count = HWY_MIN(range.end - r, std::uint64_t{kBlockRows});
    for (std::size_t begin = 0; begin < args.k || begin == 0; begin += kTileElements) {
      const std::size_t elements = HWY_MIN(args.k - begin, kTileElements);
      const std::size_t row_offset = begin / info.block_elements * info.block_bytes;
      for (std::size_t i = 0; i < count; ++i)
        decode_row_simd(dtype, weight + (r + i) * args.weight_row_bytes + row_offset, elements,
                        scratch + i * kTileElements);
      // The last tile may reach past the block; it multiplies zeros there.
      for (std::size_t i = count; i % kTileRows != 0; ++i)
        std::memset(scratch + i * kTileElements, 0, kTileElements * sizeof(float));
      tile_strip(batch.panels, args.k, batch.rows, scratch, count, begin, elements, sums);
    }
    store_sums(batch, sums, r, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
