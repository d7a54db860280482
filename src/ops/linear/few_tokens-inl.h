// Common ground of the kernels that multiply few token rows in words: the scale of x, and how many rows are taken at a
// time. Included by their files, once per instruction set.
#if defined(SHUNT_OPS_FEW_TOKENS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_FEW_TOKENS_INL_H_
#undef SHUNT_OPS_FEW_TOKENS_INL_H_
#else
#define SHUNT_OPS_FEW_TOKENS_INL_H_
#endif

#include <bit>
#include <limits>

#include "ops/linear/word_blocking.h"
#include "ops/quantize/block_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// The scale of 256 elements of a token row, and its inverse.
struct WordScale {
  float scale;
  float inverse;
};

// An element that is not finite makes the scale NaN, and with it all products of the row. A block whose scale could not
// be inverted in F32 counts as zeros.
HWY_INLINE WordScale word_scale(const float* x) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr float kLeast = 0x1p-100F;
  // Magnitudes that are not finite exceed all others when compared as integers.
  auto most = hn::Zero(di);
  for (std::size_t i = 0; i < kWordBlock; i += hn::MaxLanes(d))
    most = hn::Max(most, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  const float largest = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, most)));
  if (largest < kLeast) return {0, 0};
  const bool is_finite = largest <= std::numeric_limits<float>::max();
  return {is_finite ? largest / kMostWord : std::numeric_limits<float>::quiet_NaN(), kMostWord / largest};
}

// Calls use<count>(first) for four, two or one of the token rows at a time.
template <class Use>
HWY_INLINE void for_few_tokens(std::size_t rows, const Use& use) {
  std::size_t t = 0;
  for (; t + 4 <= rows; t += 4) use.template operator()<4>(t);
  for (; t + 2 <= rows; t += 2) use.template operator()<2>(t);
  for (; t < rows; ++t) use.template operator()<1>(t);
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
