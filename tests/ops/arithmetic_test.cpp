#include "ops/arithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace shunt::arithmetic_tests {
namespace {

// Returns whether x times a weight of `dtype` may be computed in this arithmetic.
bool may(Numerics numerics, DType dtype, Arithmetic arithmetic) {
  const Operand x = Operand::contiguous(DType::F32, {4, 256});
  const Operand weight = Operand::contiguous(dtype, {16, 256}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, {4, 16});
  const Operand* const inputs[] = {&x, &weight};
  const Attributes none;
  return allows({.op = Op::linear, .attributes = &none, .inputs = inputs, .output = &result, .numerics = numerics},
                arithmetic);
}

TEST(Arithmetic, ExactAllowsWhatIsAsGoodAsF32) {
  for (const DType dtype : {DType::F32, DType::F16, DType::Q8_0, DType::Q4_K}) {
    EXPECT_TRUE(may(Numerics::exact, dtype, Arithmetic::f32));
    EXPECT_TRUE(may(Numerics::exact, dtype, Arithmetic::bf16x3));
    for (const Arithmetic other : {Arithmetic::words, Arithmetic::halves, Arithmetic::bf16, Arithmetic::bytes})
      EXPECT_FALSE(may(Numerics::exact, dtype, other)) << info_of(other).name;
  }
}

TEST(Arithmetic, AutomaticAllowsWhatIsSmallBesideTheFormatOfTheWeights) {
  struct Row {
    DType dtype;
    std::vector<Arithmetic> allowed;
  };
  using enum Arithmetic;
  const Row rows[] = {{DType::F32, {f32, bf16x3}},
                      {DType::F16, {f32, bf16x3, words, halves}},
                      {DType::BF16, {f32, bf16x3, words, halves}},
                      {DType::Q8_0, {f32, bf16x3, words, halves, bf16}},
                      {DType::Q6_K, {f32, bf16x3, words, halves, bf16, bytes}},
                      {DType::Q4_0, {f32, bf16x3, words, halves, bf16, bytes}}};
  for (const Row& row : rows)
    for (const Arithmetic arithmetic : {f32, bf16x3, words, halves, bf16, bytes})
      EXPECT_EQ(may(Numerics::automatic, row.dtype, arithmetic), std::ranges::count(row.allowed, arithmetic) == 1)
          << name_of(row.dtype) << " in " << info_of(arithmetic).name;
}

TEST(Arithmetic, AutomaticRoundsNothingWithoutWeights) {
  const Operand x = Operand::contiguous(DType::F32, {4, 256});
  const Operand result = Operand::contiguous(DType::F32, {4, 4});
  const Operand* const inputs[] = {&x, &x};
  const Attributes none;
  const OpCall product{
      .op = Op::linear, .attributes = &none, .inputs = inputs, .output = &result, .numerics = Numerics::automatic};
  EXPECT_TRUE(allows(product, Arithmetic::f32));
  EXPECT_FALSE(allows(product, Arithmetic::halves));
}

TEST(Arithmetic, FastAllowsAll) {
  for (const Arithmetic each : {Arithmetic::f32, Arithmetic::halves, Arithmetic::bytes})
    EXPECT_TRUE(may(Numerics::fast, DType::F32, each));
}

TEST(Arithmetic, TheLeastExactHasTheLargestError) {
  EXPECT_EQ(least_exact(Arithmetic::f32, Arithmetic::halves), Arithmetic::halves);
  EXPECT_EQ(least_exact(Arithmetic::bytes, Arithmetic::halves), Arithmetic::bytes);
  EXPECT_EQ(least_exact(Arithmetic::f32, Arithmetic::bf16x3), Arithmetic::f32);
}

TEST(Numerics, ThatMayRoundMoreMayDifferMore) {
  const NumericsBounds& exact = bounds_of(Numerics::exact);
  const NumericsBounds& automatic = bounds_of(Numerics::automatic);
  const NumericsBounds& fast = bounds_of(Numerics::fast);
  EXPECT_LT(exact.nmse, automatic.nmse);
  EXPECT_LE(exact.mean_kl, automatic.mean_kl);
  EXPECT_LT(automatic.mean_kl, fast.mean_kl);
  EXPECT_LT(fast.perplexity, 1) << "it is a share";
}

TEST(Numerics, HaveNames) {
  for (const Numerics each : {Numerics::exact, Numerics::automatic, Numerics::fast})
    EXPECT_EQ(numerics_from_name(name_of(each)), each);
  const auto unknown = numerics_from_name("exakt");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "unknown numerics \"exakt\" (did you mean exact?); choose from: exact auto fast");
  EXPECT_NE(describe_numerics().find("auto: "), std::string::npos);
}

}  // namespace
}  // namespace shunt::arithmetic_tests
