// linear in words for few token rows and weights that are unpacked to bytes, by processors that sum four products of
// bytes in 32 bits: the integers of x are split into bytes, so that those of weights need not be widened. Included by
// row_products_simd.cpp, once per instruction set.
//
// An instruction set has a file with round_split(), which is phase 1; kSplitsX<dtype>; for_split_blocks_of<dtype>();
// and multiply_split_row(), which adds the products of weight rows to lanes of F32, or multiply_scaled_rows(), which
// computes them.
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
// Computes the weight rows of `range` for kTokens token rows from `row` on.
template <class Blocks, std::size_t kTokens>
HWY_NOINLINE void multiply_split_rows(const LinearArgs& args, const std::byte* weight, const SplitX& x, std::size_t row,
                                      const float* const* residual, float* const* out, Range range) {
  const BlockTag d;
  const std::uint64_t count = range.end - range.begin;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t r = range.begin + in_two_streams(i, count);
    BlockVec totals[kTokens];
    HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) totals[t] = hn::Zero(d);
    multiply_split_row<Blocks>(weight + r * args.weight_row_bytes, x, row, args.k, totals);
    for (std::size_t t = 0; t < kTokens; ++t) {
      const float* const add = residual[row + t];
      out[row + t][r] = hn::GetLane(hn::SumOfLanes(d, totals[t])) + (add == nullptr ? 0 : add[r]);
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
#if SHUNT_HAS_NIBBLE_BLOCKS
          if constexpr (Blocks::kElements == kWordBlock)
            return multiply_scaled_rows<Blocks, kTokens>(args, weight, x, t, residual, out, range);
          else
#endif
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
