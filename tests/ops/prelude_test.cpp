// The functions that elementwise expressions may use, including those that no row uses yet: each prelude against libm.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/each_target.h"
#include "ops/elementwise/prelude_scalar.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/prelude_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/elementwise/prelude_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using prelude::Vector;

// out[i] = function `which` of x[i] and -0.5 x[i]; sizes are whole vectors of every target.
void apply(int which, const float* x, std::size_t elements, float* out) {
  const prelude::Floats d;
  for (std::size_t i = 0; i < elements; i += hn::Lanes(d)) {
    const Vector a(hn::LoadU(d, x + i));
    const Vector b = a * -0.5F;
    Vector result;
    if (which == 0) result = prelude::exp(a);
    if (which == 1) result = prelude::tanh(a);
    if (which == 2) result = prelude::erf(a);
    if (which == 3) result = prelude::sqrt(prelude::abs(a));
    if (which == 4) result = prelude::min(a, b);
    if (which == 5) result = prelude::max(a, b);
    if (which == 6) result = prelude::select(a, b, 7.0F);
    if (which == 7) result = 1.0F - a / (b * b + 3.0F) + -a;
    if (which == 8) result = Vector(math::exp_below_zero(d, (-prelude::abs(a)).lanes));
    if (which == 9) result = prelude::log(prelude::abs(a));
    if (which == 10) result = prelude::sin(a * 40.0F);
    if (which == 11) result = prelude::cos(a * 40.0F);
    hn::StoreU(result.lanes, d, out + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(apply);

void run_simd(int which, const std::vector<float>& x, std::vector<float>& out) {
  HWY_DYNAMIC_DISPATCH(apply)(which, x.data(), x.size(), out.data());
}

}  // namespace
}  // namespace shunt

namespace shunt::test {
namespace {

using scalar_prelude::Real;

double expected(int which, double x) {
  const double b = -0.5 * x;
  const double values[] = {std::exp(x),
                           std::tanh(x),
                           std::erf(x),
                           std::sqrt(std::abs(x)),
                           std::min(x, b),
                           std::max(x, b),
                           x > 0 ? b : 7.0,
                           1.0 - x / (b * b + 3.0) + -x,
                           std::exp(-std::abs(x)),
                           std::log(std::abs(x)),
                           std::sin(static_cast<double>(static_cast<float>(x) * 40.0F)),
                           std::cos(static_cast<double>(static_cast<float>(x) * 40.0F))};
  return values[which];
}

double scalar(int which, double x) {
  const Real a(x);
  const Real b = a * -0.5F;
  const Real values[] = {exp(a),
                         tanh(a),
                         erf(a),
                         sqrt(abs(a)),
                         min(a, b),
                         max(a, b),
                         select(a, b, 7.0F),
                         1.0F - a / (b * b + 3.0F) + -a,
                         exp(-abs(a)),
                         log(abs(a)),
                         sin(Real(static_cast<double>(static_cast<float>(x) * 40.0F))),
                         cos(Real(static_cast<double>(static_cast<float>(x) * 40.0F)))};
  return values[which].value;
}

constexpr int kFunctions = 12;

std::vector<float> arguments() {
  std::vector<float> x;
  for (float magnitude = 1e-6F; magnitude < 84; magnitude *= 1.0037F)
    for (const float sign : {1.0F, -1.0F}) x.push_back(sign * magnitude);
  x.resize(x.size() / 64 * 64);
  return x;
}

TEST(Prelude, ScalarFunctionsAreThoseOfLibm) {
  for (int which = 0; which < kFunctions; ++which)
    for (const float x : arguments()) {
      const double value = expected(which, static_cast<double>(x));
      EXPECT_NEAR(scalar(which, static_cast<double>(x)), value, std::abs(value) * 1e-15) << which << " of " << x;
    }
}

TEST(Prelude, SimdFunctionsAreWithinAFewUnitsInTheLastPlace) {
  const std::vector<float> x = arguments();
  for_each_simd_target([&] {
    for (int which = 0; which < kFunctions; ++which) {
      std::vector<float> out(x.size());
      run_simd(which, x, out);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double value = expected(which, static_cast<double>(x[i]));
        // These functions cancel near their zeros.
        double scale = std::abs(value);
        if (which == 7) scale = 1 + std::abs(static_cast<double>(x[i]));
        if (which == 10 || which == 11) scale = 0.5;
        ASSERT_NEAR(static_cast<double>(out[i]), value, scale * 4e-7) << which << " of " << x[i];
      }
    }
  });
}

TEST(Prelude, SimdFunctionsAtTheEnds) {
  std::vector<float> x(16, 0.0F);
  const float infinity = INFINITY;
  const float cases[] = {infinity, -infinity, NAN, 89.0F, -110.0F, 88.7F, -100.0F, 0.0F};
  std::copy(std::begin(cases), std::end(cases), x.begin());
  for_each_simd_target([&] {
    std::vector<float> out(16);
    run_simd(0, x, out);
    EXPECT_EQ(out[0], infinity);
    EXPECT_EQ(out[1], 0);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], infinity);
    EXPECT_EQ(out[4], 0);
    EXPECT_NEAR(static_cast<double>(out[5]), std::exp(static_cast<double>(x[5])), 1e32);
    EXPECT_NEAR(static_cast<double>(out[6]), std::exp(-100.0), 2e-45);
    EXPECT_EQ(out[7], 1);
    for (const int which : {1, 2}) {
      run_simd(which, x, out);
      EXPECT_EQ(out[0], 1);
      EXPECT_EQ(out[1], -1);
      EXPECT_TRUE(std::isnan(out[2]));
      EXPECT_EQ(out[7], 0);
    }
    run_simd(8, x, out);
    EXPECT_EQ(out[0], 0);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_NEAR(static_cast<double>(out[7]), 1, 2e-7);
  });
}

}  // namespace
}  // namespace shunt::test
#endif
