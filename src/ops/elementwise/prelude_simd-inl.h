// The functions of elementwise expressions over one F32 vector; compiled once per instruction set.
//
// Included by elementwise_simd.cpp after hwy/highway.h, within foreach_target.
#if defined(SHUNT_OPS_ELEMENTWISE_PRELUDE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_ELEMENTWISE_PRELUDE_SIMD_INL_H_
#undef SHUNT_OPS_ELEMENTWISE_PRELUDE_SIMD_INL_H_
#else
#define SHUNT_OPS_ELEMENTWISE_PRELUDE_SIMD_INL_H_
#endif

#include "ops/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace prelude {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

// A vector with the operators that expressions use. Literals are broadcast to all lanes.
struct Vector {
  hn::Vec<Floats> lanes;

  HWY_INLINE Vector() : lanes(hn::Zero(Floats())) {}
  HWY_INLINE explicit Vector(hn::Vec<Floats> v) : lanes(v) {}
  HWY_INLINE Vector(float literal) : lanes(hn::Set(Floats(), literal)) {}

  friend HWY_INLINE Vector operator+(Vector a, Vector b) { return Vector(hn::Add(a.lanes, b.lanes)); }
  friend HWY_INLINE Vector operator-(Vector a, Vector b) { return Vector(hn::Sub(a.lanes, b.lanes)); }
  friend HWY_INLINE Vector operator*(Vector a, Vector b) { return Vector(hn::Mul(a.lanes, b.lanes)); }
  friend HWY_INLINE Vector operator/(Vector a, Vector b) { return Vector(hn::Div(a.lanes, b.lanes)); }
  friend HWY_INLINE Vector operator-(Vector a) { return Vector(hn::Neg(a.lanes)); }
};

HWY_INLINE Vector exp(Vector x) { return Vector(math::exp(Floats(), x.lanes)); }
HWY_INLINE Vector log(Vector x) { return Vector(math::log(Floats(), x.lanes)); }
HWY_INLINE Vector sin(Vector x) { return Vector(math::sine(Floats(), x.lanes)); }
HWY_INLINE Vector cos(Vector x) { return Vector(math::cosine(Floats(), x.lanes)); }
HWY_INLINE Vector tanh(Vector x) { return Vector(math::tanh(Floats(), x.lanes)); }
HWY_INLINE Vector erf(Vector x) { return Vector(math::erf(Floats(), x.lanes)); }
HWY_INLINE Vector sqrt(Vector x) { return Vector(hn::Sqrt(x.lanes)); }
HWY_INLINE Vector abs(Vector x) { return Vector(hn::Abs(x.lanes)); }
// NaN where either argument is.
HWY_INLINE Vector min(Vector a, Vector b) {
  const auto is_b = hn::Or(hn::Lt(b.lanes, a.lanes), hn::IsNaN(b.lanes));
  return Vector(hn::IfThenElse(is_b, b.lanes, a.lanes));
}
HWY_INLINE Vector max(Vector a, Vector b) {
  const auto is_b = hn::Or(hn::Lt(a.lanes, b.lanes), hn::IsNaN(b.lanes));
  return Vector(hn::IfThenElse(is_b, b.lanes, a.lanes));
}
// Returns `chosen` where `condition` is above zero, else `other`.
HWY_INLINE Vector select(Vector condition, Vector chosen, Vector other) {
  return Vector(hn::IfThenElse(hn::Gt(condition.lanes, hn::Zero(Floats())), chosen.lanes, other.lanes));
}

}  // namespace prelude
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif
