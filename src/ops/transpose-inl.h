// Transposes matrices of F32, four by four; compiled once per instruction set.
#if defined(SHUNT_OPS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_TRANSPOSE_INL_H_
#undef SHUNT_OPS_TRANSPOSE_INL_H_
#else
#define SHUNT_OPS_TRANSPOSE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag4 = hn::FixedTag<float, 4>;
using Vec4 = hn::Vec<Tag4>;

HWY_INLINE void transpose4(Vec4& a, Vec4& b, Vec4& c, Vec4& d) {
  const Tag4 d4;
  const hn::RepartitionToWide<Tag4> wide;
  const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d4, a, b));
  const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(d4, a, b));
  const auto cd_low = hn::BitCast(wide, hn::InterleaveLower(d4, c, d));
  const auto cd_high = hn::BitCast(wide, hn::InterleaveUpper(d4, c, d));
  a = hn::BitCast(d4, hn::InterleaveLower(wide, ab_low, cd_low));
  b = hn::BitCast(d4, hn::InterleaveUpper(wide, ab_low, cd_low));
  c = hn::BitCast(d4, hn::InterleaveLower(wide, ab_high, cd_high));
  d = hn::BitCast(d4, hn::InterleaveUpper(wide, ab_high, cd_high));
}

// in [rows, columns] -> out [columns, rows]. REQUIRES: rows and columns are multiples of 4, and rows of both are
// aligned to four elements.
inline void transpose(const float* HWY_RESTRICT in, std::size_t in_stride, std::size_t rows, std::size_t columns,
                      float* HWY_RESTRICT out, std::size_t out_stride) {
  const Tag4 d;
  for (std::size_t c = 0; c < columns; c += 4)
    for (std::size_t r = 0; r < rows; r += 4) {
      Vec4 v[4];
      for (std::size_t i = 0; i < 4; ++i) v[i] = hn::Load(d, in + (r + i) * in_stride + c);
      transpose4(v[0], v[1], v[2], v[3]);
      for (std::size_t i = 0; i < 4; ++i) hn::Store(v[i], d, out + (c + i) * out_stride + r);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
