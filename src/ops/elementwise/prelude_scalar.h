// The functions of elementwise expressions over one double, as the reference defines them.
//
// Literals in expressions are F32, as shaders need them; Real wraps a double so that it accepts them.
#pragma once

#include <cmath>

namespace shunt::scalar_prelude {

struct Real {
  double value = 0;

  Real() = default;
  explicit Real(double number) : value(number) {}
  Real(float literal) : value(static_cast<double>(literal)) {}

  friend Real operator+(Real a, Real b) { return Real(a.value + b.value); }
  friend Real operator-(Real a, Real b) { return Real(a.value - b.value); }
  friend Real operator*(Real a, Real b) { return Real(a.value * b.value); }
  friend Real operator/(Real a, Real b) { return Real(a.value / b.value); }
  friend Real operator-(Real a) { return Real(-a.value); }
};

inline Real exp(Real x) { return Real(std::exp(x.value)); }
inline Real log(Real x) { return Real(std::log(x.value)); }
inline Real sin(Real x) { return Real(std::sin(x.value)); }
inline Real cos(Real x) { return Real(std::cos(x.value)); }
inline Real tanh(Real x) { return Real(std::tanh(x.value)); }
inline Real erf(Real x) { return Real(std::erf(x.value)); }
inline Real sqrt(Real x) { return Real(std::sqrt(x.value)); }
inline Real abs(Real x) { return Real(std::abs(x.value)); }
// NaN if either argument is.
inline Real min(Real a, Real b) { return b.value < a.value || std::isnan(b.value) ? b : a; }
inline Real max(Real a, Real b) { return a.value < b.value || std::isnan(b.value) ? b : a; }
// Returns `chosen` if `condition` is above zero, else `other`.
inline Real select(Real condition, Real chosen, Real other) { return condition.value > 0 ? chosen : other; }

}  // namespace shunt::scalar_prelude
