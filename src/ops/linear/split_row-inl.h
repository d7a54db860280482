// linear in words for few token rows and weights that are unpacked to bytes, by processors that sum four products of
// bytes in 32 bits: the integers of x are split into bytes, so that those of weights need not be widened. Included by
// row_products_simd.cpp, once per instruction set.
//
// An instruction set has a file with round_split(), which is phase 1; kSplitsX<dtype>; for_split_blocks_of<dtype>();
// and multiply_split_row(), which adds the products of kSplitRows weight rows to lanes of F32.
#if defined(SHUNT_OPS_SPLIT_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_SPLIT_ROW_INL_H_
#undef SHUNT_OPS_SPLIT_ROW_INL_H_
#else
#define SHUNT_OPS_SPLIT_ROW_INL_H_
#endif

#include "ops/kernel.h"
#include "ops/linear/byte_dot-inl.h"
#include "ops/linear/few_tokens-inl.h"
#include "ops/linear/linear.h"
#include "ops/linear/split_dotprod-inl.h"
#include "ops/linear/split_vnni-inl.h"

#undef SHUNT_HAS_SPLIT_ROWS
#define SHUNT_HAS_SPLIT_ROWS (SHUNT_HAS_NIBBLE_BLOCKS || SHUNT_HAS_SPLIT_DOTPROD)

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Returns whether this instruction set, on this processor, multiplies the dtype's weights by SplitX.
HWY_INLINE bool splits_x(DType weight) {
#if SHUNT_HAS_SPLIT_ROWS
  return multiplies_fours() && with_dtype(weight, []<DType kDType>() { return kSplitsX<kDType>; });
#else
  static_cast<void>(weight);
  return false;
#endif
}

#if SHUNT_HAS_SPLIT_ROWS
// Computes kRows weight rows for kTokens token rows from `row` on.
template <class Blocks, std::size_t kTokens, std::size_t kRows>
HWY_INLINE void multiply_split_rows_at(const LinearArgs& args, const std::byte* weight, const SplitX& x,
                                       std::size_t row, const float* const* residual, float* const* out,
                                       const std::uint64_t (&at)[kRows]) {
  const BlockTag d;
  const std::byte* from[kRows];
  BlockVec totals[kRows][kTokens];
  HWY_UNROLL(2) for (std::size_t r = 0; r < kRows; ++r) {
    from[r] = weight + at[r] * args.weight_row_bytes;
    forget_register(from[r]);
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) totals[r][t] = hn::Zero(d);
  }
  multiply_split_row<Blocks>(from, x, row, args.k, totals);
  HWY_UNROLL(2) for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      const float* const add = residual[row + t];
      out[row + t][at[r]] = hn::GetLane(hn::SumOfLanes(d, totals[r][t])) + (add == nullptr ? 0 : add[at[r]]);
    }
  }
}

// Computes the weight rows of `range` for kTokens token rows from `row` on.
template <class Blocks, std::size_t kTokens>
HWY_NOINLINE void multiply_split_rows(const LinearArgs& args, const std::byte* weight, const SplitX& x, std::size_t row,
                                      const float* const* residual, float* const* out, Range range) {
  constexpr std::size_t kRows = kSplitRows<Blocks, kTokens>;
  const std::uint64_t count = range.end - range.begin;
  std::uint64_t i = 0;
  for (; i + kRows <= count; i += kRows) {
    std::uint64_t at[kRows];
    HWY_UNROLL(2) for (std::size_t r = 0; r < kRows; ++r) {
      at[r] = range.begin + in_two_streams(i + r, count);
      forget_register(at[r]);
    }
    multiply_split_rows_at<Blocks, kTokens>(args, weight, x, row, residual, out, at);
  }
  if constexpr (kRows != 1) {
    for (; i < count; ++i) {
      const std::uint64_t at[1] = {range.begin + in_two_streams(i, count)};
      multiply_split_rows_at<Blocks, kTokens>(args, weight, x, row, residual, out, at);
    }
  }
}

// Computes the weight rows of `range` for all token rows. REQUIRES: splits_x(dtype).
static HWY_NOINLINE void multiply_split(const LinearArgs& args, const std::byte* weight, const SplitX& x,
                                        const float* const* residual, float* const* out, Range range) {
  with_dtype(static_cast<DType>(args.weight_dtype), [&]<DType kDType>() {
    if constexpr (kSplitsX<kDType>) {
      for_split_blocks_of<kDType>([&]<class Blocks>() {
        for_few_tokens(x.rows, [&]<std::size_t kTokens>(std::size_t t) {
          multiply_split_rows<Blocks, kTokens>(args, weight, x, t, residual, out, range);
        });
      });
    }
    return true;
  });
}
#endif  // SHUNT_HAS_SPLIT_ROWS

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
