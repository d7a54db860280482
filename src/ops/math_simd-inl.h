// Functions on F32 vectors for the SIMD kernels, compiled once per instruction set. NaN gives NaN.
//
// Included by x_simd.cpp files after hwy/highway.h, within foreach_target.
#if defined(SHUNT_OPS_MATH_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_MATH_SIMD_INL_H_
#undef SHUNT_OPS_MATH_SIMD_INL_H_
#else
#define SHUNT_OPS_MATH_SIMD_INL_H_
#endif

#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace math {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Ints = hn::Vec<hn::RebindToSigned<D>>;

// x = n ln 2 + r with |r| <= ln 2 / 2; x is clamped to the range where exp(x) is between 0 and infinity in F32.
template <class D>
struct Reduced {
  hn::Vec<D> r;
  Ints<D> n;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE Reduced<D> reduce_by_ln2(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V clamped = hn::Min(hn::Max(x, hn::Set(d, -104.0F)), hn::Set(d, 89.0F));
  const V turns = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504F)));
  // ln 2 is split in two parts; the first has trailing zeros, so that its products are exact.
  const V r = hn::NegMulAdd(turns, hn::Set(d, 1.42860677e-6F), hn::NegMulAdd(turns, hn::Set(d, 0x1.62e4p-1F), clamped));
  return {r, hn::ConvertTo(di, turns)};
}

// exp(r) - 1 for |r| <= ln 2 / 2: the Taylor series, whose first omitted term is below 6e-9.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_near_zero(D d, V r) {
  V p = hn::Set(d, 1.0F / 5040.0F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 720.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 120.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 24.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 6.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  return hn::MulAdd(hn::Mul(p, r), r, r);
}

// 2^n for n in [-126, 127].
template <class D>
HWY_INLINE hn::Vec<D> power_of_two(D d, Ints<D> n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// Within 2 units in the last place; 0 or infinity outside the range of F32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const Reduced<D> reduced = reduce_by_ln2(d, x);
  // Scales in two steps, because 2^n alone is not a normal number when the result is not.
  const Ints<D> half = hn::ShiftRight<1>(reduced.n);
  const V mantissa = hn::Add(expm1_near_zero(d, reduced.r), hn::Set(d, 1.0F));
  const V result = hn::Mul(hn::Mul(mantissa, power_of_two(d, half)), power_of_two(d, hn::Sub(reduced.n, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// A faster exp(x) for x <= 0: within 2 units in the last place down to -86, and 0 below that.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_below_zero(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V lowest = hn::Set(d, -86.0F);
  // Adding 1.5 * 2^23 rounds to a whole number n, and the lower bits of the sum are those of n. The additional 127
  // makes them the exponent field of 2^n.
  const V rounder = hn::Set(d, 12582912.0F + 127.0F);
  const V shifted = hn::MulAdd(hn::Max(x, lowest), hn::Set(d, 1.44269504F), rounder);
  const V n = hn::Sub(shifted, rounder);
  // Uses x itself, so that NaN propagates.
  const V r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6F), hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1F), x));
  // A polynomial interpolated at Chebyshev nodes.
  V p = hn::Set(d, 0.00836915567F);
  for (const float c : {0.0419175575F, 0.166665052F, 0.499988689F, 1.00000001F, 1.00000008F})
    p = hn::MulAdd(p, r, hn::Set(d, c));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), hn::Mul(p, power));
}

// Within 2 units in the last place. For x = 2^n m with m between sqrt(1/2) and sqrt(2), log m = 2 artanh s with
// s = (m - 1) / (m + 1). The first omitted term of its series is below 2e-9 of the first term.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V least_normal = hn::Set(d, 0x1p-126F);
  const auto subnormal = hn::Lt(x, least_normal);
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p23F)), x);
  // 0x3F3504F3 is sqrt(1/2), the lowest m, as bits.
  const Ints<D> bits = hn::BitCast(di, scaled);
  const Ints<D> n = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(n)));
  const V count = hn::Sub(hn::ConvertTo(d, n), hn::IfThenElseZero(subnormal, hn::Set(d, 23.0F)));
  const V one = hn::Set(d, 1.0F);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V square = hn::Mul(s, s);
  V p = hn::Set(d, 2.0F / 9.0F);
  for (const float c : {2.0F / 7.0F, 2.0F / 5.0F, 2.0F / 3.0F}) p = hn::MulAdd(p, square, hn::Set(d, c));
  const V small = hn::MulAdd(hn::Mul(p, square), s, hn::Add(s, s));
  V result = hn::MulAdd(count, hn::Set(d, 0x1.62e4p-1F), hn::MulAdd(count, hn::Set(d, 1.42860677e-6F), small));
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  result = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), result, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

// tanh |x| = -e / (e + 2) with e = exp(-2 |x|) - 1, which stays precise near zero.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V magnitude = hn::Min(hn::Abs(x), hn::Set(d, 20.0F));
  const Reduced<D> reduced = reduce_by_ln2(d, hn::Mul(magnitude, hn::Set(d, -2.0F)));
  const V scale = power_of_two(d, reduced.n);
  const V e = hn::MulAdd(scale, expm1_near_zero(d, reduced.r), hn::Sub(scale, hn::Set(d, 1.0F)));
  const V result = hn::Div(hn::Neg(e), hn::Add(e, hn::Set(d, 2.0F)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySignToAbs(result, x));
}

// Uses polynomials interpolated at Chebyshev nodes. Below 1: erf(x) / x in x^2 (relative error 1e-9). From 1 to 4,
// where erf reaches 1 in F32: erfc(x) exp(x^2) in 1 / (1 + x / 2) (error 5e-8).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  const V magnitude = hn::Min(hn::Abs(x), hn::Set(d, 4.0F));
  const V square = hn::Mul(magnitude, magnitude);
  V small = hn::Set(d, 7.875875050e-05F);
  for (const float c :
       {-8.016864283e-04F, 5.189087423e-03F, -2.685421201e-02F, 1.128359472e-01F, -3.761262667e-01F, 1.128379166e+00F})
    small = hn::MulAdd(small, square, hn::Set(d, c));
  small = hn::Mul(small, magnitude);

  const V t = hn::Div(hn::Set(d, 1.0F), hn::MulAdd(magnitude, hn::Set(d, 0.5F), hn::Set(d, 1.0F)));
  V large = hn::Set(d, -5.363042809e-02F);
  for (const float c :
       {-5.706519992e-02F, 4.034950533e-01F, 1.014954125e-01F, 3.307571337e-01F, 2.736343401e-01F, 6.051183905e-04F})
    large = hn::MulAdd(large, t, hn::Set(d, c));
  large = hn::NegMulAdd(large, exp(d, hn::Neg(square)), hn::Set(d, 1.0F));

  const V result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 1.0F)), small, large);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySignToAbs(result, x));
}

// Computes sine and cosine of 2 pi t for |t| <= 1, each within 2e-7. The nearest quarter turn is exact; polynomials
// interpolated at Chebyshev nodes cover the remaining eighth of a turn on either side.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void sine_and_cosine_of_turns(D d, V t, V& sine, V& cosine) {
  const hn::RebindToSigned<D> di;
  const V quarters = hn::Round(hn::Mul(t, hn::Set(d, 4.0F)));
  const V u = hn::NegMulAdd(quarters, hn::Set(d, 0.25F), t);
  const V square = hn::Mul(u, u);
  V s = hn::Set(d, -75.4016127F);
  for (const float c : {81.5925429F, -41.3416626F, 6.28318529F}) s = hn::MulAdd(s, square, hn::Set(d, c));
  s = hn::Mul(s, u);
  V c = hn::Set(d, 59.2201690F);
  for (const float k : {-85.4428447F, 64.9393161F, -19.7392087F, 1.0F}) c = hn::MulAdd(c, square, hn::Set(d, k));

  const Ints<D> quadrant = hn::ConvertTo(di, quarters);
  const Ints<D> one = hn::Set(di, 1);
  const Ints<D> two = hn::Set(di, 2);
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(quadrant, one), one));
  const V sine_sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(quadrant, two)));
  const V cosine_sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(hn::Add(quadrant, one), two)));
  sine = hn::Xor(hn::IfThenElse(odd, c, s), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), cosine_sign);
}

// Computes sine and cosine of x for |x| <= 8192, each within 2e-7. Subtracts the nearest quarter turn in three parts,
// of which the first two have exact products; Taylor series take the remainder.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void sine_and_cosine_near_zero(D d, V x, V& sine, V& cosine) {
  const hn::RebindToSigned<D> di;
  const V quarters = hn::Round(hn::Mul(x, hn::Set(d, 0.636619772F)));
  V r = hn::NegMulAdd(quarters, hn::Set(d, 0x1.92p0F), x);
  r = hn::NegMulAdd(quarters, hn::Set(d, 0x1.fb4p-12F), r);
  r = hn::NegMulAdd(quarters, hn::Set(d, 0x1.4442d2p-24F), r);
  const V square = hn::Mul(r, r);
  V s = hn::Set(d, 1.0F / 362880.0F);
  for (const float c : {-1.0F / 5040.0F, 1.0F / 120.0F, -1.0F / 6.0F}) s = hn::MulAdd(s, square, hn::Set(d, c));
  s = hn::MulAdd(hn::Mul(s, square), r, r);
  V c = hn::Set(d, -1.0F / 3628800.0F);
  for (const float k : {1.0F / 40320.0F, -1.0F / 720.0F, 1.0F / 24.0F, -0.5F, 1.0F})
    c = hn::MulAdd(c, square, hn::Set(d, k));

  const Ints<D> quadrant = hn::ConvertTo(di, quarters);
  const Ints<D> one = hn::Set(di, 1);
  const Ints<D> two = hn::Set(di, 2);
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(quadrant, one), one));
  const V sine_sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(quadrant, two)));
  const V cosine_sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(hn::Add(quadrant, one), two)));
  sine = hn::Xor(hn::IfThenElse(odd, c, s), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), cosine_sign);
}

// Calls `function` for each lane, for arguments that take many words of pi to reduce.
template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V by_lanes(D d, V x, float (*function)(float)) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sine(D d, V x) {
  if (!hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, 8192.0F))))
    return by_lanes(d, x, [](float value) { return std::sin(value); });
  V s;
  V c;
  sine_and_cosine_near_zero(d, x, s, c);
  return s;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V cosine(D d, V x) {
  if (!hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, 8192.0F))))
    return by_lanes(d, x, [](float value) { return std::cos(value); });
  V s;
  V c;
  sine_and_cosine_near_zero(d, x, s, c);
  return c;
}

// Returns the largest lane that is not NaN, even if it is -infinity, which MaxOfLanes of some targets misses.
template <class D, class V = hn::Vec<D>>
HWY_INLINE float largest_lane(D d, V v) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}

}  // namespace math
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif
