// The functions that CUDA kernels compute without a library, on the host, against the C++ library in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#define SHUNT_FUNCTION inline
#include "ops/kernel_math.cuh"

namespace shunt::kernel_math_tests {
namespace {

using Function = float (*)(float);
using Exact = double (*)(double);

// The largest distance from the exact value, in units in the last place (float).
double largest_distance(Function function, Exact exact, float begin, float end) {
  constexpr std::uint32_t kSteps = 200'000;
  double largest = 0;
  for (std::uint32_t step = 0; step <= kSteps; ++step) {
    const float x = begin + (end - begin) * static_cast<float>(step) / kSteps;
    const double wanted = exact(double{x});
    const double unit = std::max(std::ldexp(1.0, std::ilogb(wanted == 0 ? 1 : wanted) - 23),
                                 double{std::numeric_limits<float>::denorm_min()});
    largest = std::max(largest, std::abs(double{function(x)} - wanted) / unit);
  }
  return largest;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(KernelMath, ExpIsAccurate) {
  const Exact exact = [](double x) { return std::exp(x); };
  EXPECT_LE(largest_distance(kernel_math::exp, exact, -87, 88.7F), 4);
  EXPECT_LE(largest_distance(kernel_math::exp, exact, -103, -87), 4) << "subnormal results";
  EXPECT_LE(largest_distance(kernel_math::exp, exact, -1, 1), 4);
  EXPECT_EQ(kernel_math::exp(0), 1);
  EXPECT_EQ(kernel_math::exp(kInfinity), kInfinity);
  EXPECT_EQ(kernel_math::exp(89), kInfinity);
  EXPECT_EQ(kernel_math::exp(-kInfinity), 0);
  EXPECT_EQ(kernel_math::exp(-110), 0);
  EXPECT_TRUE(std::isnan(kernel_math::exp(std::nanf(""))));
}

TEST(KernelMath, Exp2IsAccurate) {
  const Exact exact = [](double x) { return std::exp2(x); };
  EXPECT_LE(largest_distance(kernel_math::exp2, exact, -126, 127.9F), 4);
  EXPECT_LE(largest_distance(kernel_math::exp2, exact, -1, 1), 4);
  EXPECT_EQ(kernel_math::exp2(0), 1);
  EXPECT_EQ(kernel_math::exp2(-20), 0x1p-20F);
  EXPECT_EQ(kernel_math::exp2(kInfinity), kInfinity);
  EXPECT_EQ(kernel_math::exp2(128), kInfinity);
  EXPECT_EQ(kernel_math::exp2(-kInfinity), 0);
  EXPECT_EQ(kernel_math::exp2(-127), 0) << "subnormal results";
  EXPECT_TRUE(std::isnan(kernel_math::exp2(std::nanf(""))));
}

TEST(KernelMath, TanhIsAccurate) {
  const Exact exact = [](double x) { return std::tanh(x); };
  EXPECT_LE(largest_distance(kernel_math::tanh, exact, -25, 25), 4);
  EXPECT_LE(largest_distance(kernel_math::tanh, exact, -1.5F, 1.5F), 4);
  EXPECT_LE(largest_distance(kernel_math::tanh, exact, 1e-6F, 1e-3F), 4);
  EXPECT_EQ(kernel_math::tanh(kInfinity), 1);
  EXPECT_EQ(kernel_math::tanh(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(kernel_math::tanh(std::nanf(""))));
}

TEST(KernelMath, ErfIsAccurate) {
  const Exact exact = [](double x) { return std::erf(x); };
  EXPECT_LE(largest_distance(kernel_math::erf, exact, -8, 8), 8);
  EXPECT_LE(largest_distance(kernel_math::erf, exact, 1e-6F, 1e-3F), 4);
  EXPECT_EQ(kernel_math::erf(kInfinity), 1);
  EXPECT_EQ(kernel_math::erf(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(kernel_math::erf(std::nanf(""))));
}

TEST(KernelMath, LogIsAccurate) {
  const Exact exact = [](double x) { return std::log(x); };
  EXPECT_LE(largest_distance(kernel_math::log, exact, 1e-6F, 3), 4);
  EXPECT_LE(largest_distance(kernel_math::log, exact, 3, 1e30F), 4);
  EXPECT_LE(largest_distance(kernel_math::log, exact, 1e-45F, 1e-38F), 4) << "subnormal arguments";
  EXPECT_EQ(kernel_math::log(1), 0);
  EXPECT_EQ(kernel_math::log(0), -kInfinity);
  EXPECT_EQ(kernel_math::log(-0.0F), -kInfinity);
  EXPECT_EQ(kernel_math::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(kernel_math::log(-1)));
  EXPECT_TRUE(std::isnan(kernel_math::log(std::nanf(""))));
}

TEST(KernelMath, SineAndCosineAreWithinTheirBound) {
  for (std::int32_t step = -400'000; step <= 400'000; ++step) {
    const float x = static_cast<float>(step) * 0.02F;
    ASSERT_NEAR(double{kernel_math::sin(x)}, std::sin(double{x}), 2e-7) << x;
    ASSERT_NEAR(double{kernel_math::cos(x)}, std::cos(double{x}), 2e-7) << x;
  }
  EXPECT_LE(largest_distance(kernel_math::sin, [](double x) { return std::sin(x); }, -1.5F, 1.5F), 4);
  EXPECT_EQ(kernel_math::cos(0), 1);
  EXPECT_TRUE(std::isnan(kernel_math::sin(kInfinity)));
  EXPECT_TRUE(std::isnan(kernel_math::cos(-kInfinity)));
  EXPECT_TRUE(std::isnan(kernel_math::sin(std::nanf(""))));
}

TEST(KernelMath, TheRestIsExact) {
  EXPECT_EQ(kernel_math::sqrt(2), std::sqrt(2.0F));
  EXPECT_EQ(kernel_math::abs(-3), 3);
  EXPECT_FALSE(std::signbit(kernel_math::abs(-0.0F)));
  EXPECT_EQ(kernel_math::min(1, 2), 1);
  EXPECT_EQ(kernel_math::max(1, 2), 2);
  for (const auto function : {kernel_math::min, kernel_math::max}) {
    EXPECT_TRUE(std::isnan(function(std::nanf(""), 1)));
    EXPECT_TRUE(std::isnan(function(1, std::nanf(""))));
  }
  EXPECT_EQ(kernel_math::larger(1, 2), 2);
  EXPECT_EQ(kernel_math::larger(std::nanf(""), 2), 2);
  EXPECT_EQ(kernel_math::larger(2, std::nanf("")), 2);
  EXPECT_EQ(kernel_math::reciprocal(4), 0.25F);
  EXPECT_EQ(kernel_math::select(0, 1, 2), 2);
  EXPECT_EQ(kernel_math::select(0.5F, 1, 2), 1);
}

}  // namespace
}  // namespace shunt::kernel_math_tests
