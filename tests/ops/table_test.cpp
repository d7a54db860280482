#include <gtest/gtest.h>

#include "ops/op.h"

namespace shunt::table_tests {
namespace {

TEST(OpTable, EveryRowIsFoundByItsName) {
  for (const OpInfo& row : ops()) {
    auto op = op_from_name(row.name);
    ASSERT_TRUE(op.has_value()) << row.name;
    EXPECT_EQ(info_of(*op).name, row.name);
  }
}

TEST(OpTable, UnknownOpIsAnErrorThatListsTheKnownOnes) {
  auto op = op_from_name("view");
  ASSERT_FALSE(op.has_value());
  EXPECT_EQ(op.error().code, Code::invalid);
  EXPECT_NE(op.error().message.find("rms_norm"), std::string::npos);
}

TEST(OpTable, RowsCarryTheirLists) {
  const OpInfo& attention = info_of(Op::attention);
  ASSERT_EQ(attention.inputs.size(), 7U);
  EXPECT_EQ(attention.inputs[2], "values");
  EXPECT_EQ(attention.attributes.size(), 3U);
  EXPECT_EQ(info_of(Op::swiglu).expansion, "mul(silu(gate), up)");
  EXPECT_EQ(info_of(Op::scale).expression, "x * factor");
}

TEST(Shapes, SizesThatOverflowAreErrors) {
  EXPECT_FALSE(bytes_of(DType::F32, Shape{0xFFFFFFFFU, 0xFFFFFFFFU, 4}).has_value());
  EXPECT_FALSE(bytes_of(DType::Q4_K, Shape{2, 255}).has_value());
  EXPECT_EQ(bytes_of(DType::Q4_K, Shape{2, 512}).value_or(0), 2U * 2 * 144);
}

TEST(Shapes, LinearNeedsEqualColumns) {
  const Operand x = Operand::contiguous(DType::F32, Shape{3, 64});
  const Operand weight = Operand::contiguous(DType::F32, Shape{5, 32});
  const Operand* inputs[] = {&x, &weight};
  auto result = infer(Op::linear, inputs, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "linear: columns of x F32[3, 64] and weight F32[5, 32] differ");
}

}  // namespace
}  // namespace shunt::table_tests
