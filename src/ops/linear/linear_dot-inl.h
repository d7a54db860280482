// linear for few token rows. Vectors run along k, and each sum over k is folded at the end. Included by
// row_products_simd.cpp, once per instruction set.
//
// One token row reads the weight's blocks straight into its accumulators (see also linear_groups-inl.h). Memory limits
// its speed or, with few bits per weight, decoding. With two or more rows, a strip of four weight rows is decoded once
// into the thread's scratch and multiplied by all token rows.
#if defined(SHUNT_OPS_MATMUL_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_MATMUL_DOT_INL_H_
#undef SHUNT_OPS_MATMUL_DOT_INL_H_
#else
#define SHUNT_OPS_MATMUL_DOT_INL_H_
#endif

#include "ops/kernel.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_blocking.h"
#include "ops/linear/linear_groups-inl.h"
#include "ops/quantize/blocks_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

using Vec4 = hn::Vec<hn::FixedTag<float, 4>>;

// Returns the sums over the lanes of a, b, c and d.
HWY_INLINE Vec4 sum4(BlockTag t, BlockVec a, BlockVec b, BlockVec c, BlockVec d) {
  const hn::FixedTag<float, 4> d4;
  const hn::RepartitionToWide<BlockTag> wide;
  const auto ab = hn::Add(hn::InterleaveLower(t, a, b), hn::InterleaveUpper(t, a, b));  // a b a b
  const auto cd = hn::Add(hn::InterleaveLower(t, c, d), hn::InterleaveUpper(t, c, d));
  const auto low = hn::BitCast(t, hn::InterleaveLower(wide, hn::BitCast(wide, ab), hn::BitCast(wide, cd)));
  const auto high = hn::BitCast(t, hn::InterleaveUpper(wide, hn::BitCast(wide, ab), hn::BitCast(wide, cd)));
  const auto abcd = hn::Add(low, high);
#if HWY_CAP_GE512
  const hn::Half<BlockTag> half;
  const hn::Half<decltype(half)> quarter;
  const auto folded = hn::Add(hn::LowerHalf(half, abcd), hn::UpperHalf(half, abcd));
  return hn::Add(hn::LowerHalf(quarter, folded), hn::UpperHalf(quarter, folded));
#elif HWY_CAP_GE256
  (void)d4;
  const hn::Half<BlockTag> half;
  return hn::Add(hn::LowerHalf(half, abcd), hn::UpperHalf(half, abcd));
#else
  (void)d4;
  return abcd;
#endif
}

// out[0 .. count - 1] = sums + residual, count <= 4.
HWY_INLINE void store4(Vec4 sums, const float* residual, std::size_t count, float* out) {
  const hn::FixedTag<float, 4> d4;
  if (count == 4) {
    hn::StoreU(residual != nullptr ? hn::Add(sums, hn::LoadU(d4, residual)) : sums, d4, out);
    return;
  }
  alignas(16) float lanes[4];
  hn::Store(sums, d4, lanes);
  for (std::size_t i = 0; i < count; ++i) out[i] = lanes[i] + (residual != nullptr ? residual[i] : 0.0F);
}

struct DotSink {
  const float* x;
  BlockVec sums[4];
  float rest;

  HWY_INLINE explicit DotSink(const float* row) : x(row), rest(0) {
    for (BlockVec& sum : sums) sum = hn::Zero(BlockTag());
  }
  template <int kSlot>
  HWY_INLINE void put(std::size_t i, BlockVec v) {
    sums[kSlot] = hn::MulAdd(v, hn::LoadU(BlockTag(), x + i), sums[kSlot]);
  }
  HWY_INLINE void one(std::size_t i, float value) { rest += value * x[i]; }
  [[nodiscard]] HWY_INLINE BlockVec total() const {
    const BlockVec sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    alignas(64) float first[kBlockLanes] = {rest};
    return hn::Add(sum, hn::Load(BlockTag(), first));
  }
};

template <DType kDType>
HWY_INLINE BlockVec dot_row(const std::byte* row, std::size_t elements, const float* x, const float* sums) {
  if constexpr (kHasGroups<kDType>) {
    return dot_groups<kDType>(row, elements, x, sums);
  } else {
    DotSink sink(x);
    load_row<kDType>(BlockTag(), row, elements, sink);
    return sink.total();
  }
}

// `scratch` has room for one sum per group of x.
template <DType kDType>
HWY_NOINLINE void dot_one_row(const LinearArgs& args, const std::byte* weight, const float* x, const float* residual,
                              float* out, Range range, float* scratch) {
  if constexpr (kHasGroups<kDType>) sum_groups(x, args.k, scratch);
  const std::uint64_t fours = (range.end - range.begin + 3) / 4;
  for (std::uint64_t four = 0; four < fours; ++four) {
    const std::uint64_t r = range.begin + 4 * in_two_streams(four, fours);
    const std::uint64_t count = HWY_MIN(range.end - r, std::uint64_t{4});
    alignas(64) float totals[4][kBlockLanes] = {};
    for (std::uint64_t i = 0; i < count; ++i)
      hn::Store(dot_row<kDType>(weight + (r + i) * args.weight_row_bytes, args.k, x, scratch), BlockTag(), totals[i]);
    const BlockTag d;
    const Vec4 sums =
        sum4(d, hn::Load(d, totals[0]), hn::Load(d, totals[1]), hn::Load(d, totals[2]), hn::Load(d, totals[3]));
    store4(sums, residual == nullptr ? nullptr : residual + r, count, out + r);
  }
}

HWY_INLINE void dot_one_row(const LinearArgs& args, const std::byte* weight, const float* x, const float* residual,
                            float* out, Range range, float* scratch) {
  switch (static_cast<DType>(args.weight_dtype)) {
#define SHUNT_DOT_floating(name) \
  case DType::name:              \
    return dot_one_row<DType::name>(args, weight, x, residual, out, range, scratch);
#define SHUNT_DOT_quantized(name) SHUNT_DOT_floating(name)
#define SHUNT_DOT_integer(name) \
  case DType::name:             \
    return;
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_DOT_##kind(name)
#include "ops/dtypes.def"
#undef SHUNT_DOT_floating
#undef SHUNT_DOT_quantized
#undef SHUNT_DOT_integer
  }
}

// Sums of four weight rows times up to kDotRows token rows, kept from strip to strip.
struct DotSums {
  alignas(64) float lanes[kDotRows][4][kBlockLanes];
};

// Multiplies four decoded weight rows, kStripElements apart, by kTokens rows of x.
template <std::size_t kTokens>
HWY_INLINE void dot_strip(const float* weights, const float* const* x, std::size_t elements, bool first,
                          float (*sums)[4][kBlockLanes]) {
  const BlockTag d;
  BlockVec acc[kTokens][4];
  HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
    HWY_UNROLL(4) for (std::size_t r = 0; r < 4; ++r) acc[t][r] = first ? hn::Zero(d) : hn::Load(d, sums[t][r]);
  }
  std::size_t i = 0;
  for (; i + kBlockLanes <= elements; i += kBlockLanes) {
    BlockVec w[4];
    HWY_UNROLL(4) for (std::size_t r = 0; r < 4; ++r) w[r] = hn::Load(d, weights + r * kStripElements + i);
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
      const BlockVec v = hn::LoadU(d, x[t] + i);
      HWY_UNROLL(4) for (std::size_t r = 0; r < 4; ++r) acc[t][r] = hn::MulAdd(w[r], v, acc[t][r]);
    }
  }
  HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
    HWY_UNROLL(4) for (std::size_t r = 0; r < 4; ++r) hn::Store(acc[t][r], d, sums[t][r]);
  }
  for (; i < elements; ++i)
    for (std::size_t t = 0; t < kTokens; ++t)
      for (std::size_t r = 0; r < 4; ++r) sums[t][r][0] += weights[r * kStripElements + i] * x[t][i];
}

// Token rows at a time. 4 x 4 sums, 4 weights and one x take 21 of 32 registers; 4 x 2 sums take 13 of 16.
inline constexpr std::size_t kDotTokens = HWY_CAP_GE512 || HWY_TARGET == HWY_NEON ? 4 : 2;

HWY_INLINE void dot_strip_all(const float* weights, const float* const* x, std::size_t rows, std::size_t begin,
                              std::size_t elements, DotSums& sums) {
  const float* at[kDotTokens];
  for (std::size_t t = 0; t < rows; t += kDotTokens) {
    const std::size_t count = HWY_MIN(rows - t, kDotTokens);
    for (std::size_t i = 0; i < count; ++i) at[i] = x[t + i] + begin;
    if (count == 1) dot_strip<1>(weights, at, elements, begin == 0, sums.lanes + t);
    if (count == 2) dot_strip<2>(weights, at, elements, begin == 0, sums.lanes + t);
    if constexpr (kDotTokens > 2) {
      if (count == 3) dot_strip<3>(weights, at, elements, begin == 0, sums.lanes + t);
      if (count == 4) dot_strip<4>(weights, at, elements, begin == 0, sums.lanes + t);
    }
  }
}

// REQUIRES: `rows` <= kDotRows token rows; `scratch` has room for four strips.
static HWY_NOINLINE void dot_rows(const LinearArgs& args, const std::byte* weight, const float* const* x,
                                  const float* const* residual, float* const* out, std::size_t rows, Range range,
                                  float* scratch) {
  const auto dtype = static_cast<DType>(args.weight_dtype);
  const DTypeInfo& info = info_of(dtype);
  const BlockTag d;
  DotSums sums;
  for (std::uint64_t r = range.begin; r < range.end; r += 4) {
    const std::uint64_t count = HWY_MIN(range.end - r, std::uint64_t{4});
    for (std::size_t begin = 0; begin < args.k || begin == 0; begin += kStripElements) {
      const std::size_t elements = HWY_MIN(args.k - begin, kStripElements);
      const std::size_t row_offset = begin / info.block_elements * info.block_bytes;
      // If fewer than four rows are left, the last one is repeated; the extra sums are not stored.
      for (std::uint64_t i = 0; i < 4; ++i)
        decode_row_simd(dtype, weight + (r + HWY_MIN(i, count - 1)) * args.weight_row_bytes + row_offset, elements,
                        scratch + i * kStripElements);
      dot_strip_all(scratch, x, rows, begin, elements, sums);
    }
    for (std::size_t t = 0; t < rows; ++t) {
      const auto& lanes = sums.lanes[t];
      store4(sum4(d, hn::Load(d, lanes[0]), hn::Load(d, lanes[1]), hn::Load(d, lanes[2]), hn::Load(d, lanes[3])),
             residual[t] == nullptr ? nullptr : residual[t] + r, count, out[t] + r);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
