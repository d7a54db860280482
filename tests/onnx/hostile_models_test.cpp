// ONNX files whose few bytes demand much memory or time, or whose numbers overflow: each is refused or stays cheap.
#include <gtest/gtest.h>

#include <limits>

#include "onnx/budget.h"
#include "onnx/import.h"
#include "onnx/onnx_bytes.h"
#include "ops/op.h"

namespace shunt::onnx {
namespace {

Result<Imported> import(const OnnxBytes& file) {
  const std::vector<std::byte> bytes = file.bytes();
  SHUNT_TRY_ASSIGN(const Model model, parse_model(bytes));
  return import_model(model, {}, "nowhere");
}

void expect_refused(const OnnxBytes& file, Code code, std::string_view why) {
  const auto imported = import(file);
  ASSERT_FALSE(imported.has_value()) << why;
  EXPECT_EQ(imported.error().code, code) << imported.error().message;
  EXPECT_NE(imported.error().message.find(why), std::string::npos) << imported.error().message;
}

constexpr std::string_view kOverBudget = "importing the model would compute";

TEST(HostileOnnx, SplitWithoutOutputsIsRefused) {
  expect_refused(OnnxBytes().input("x", {4}).node("Split", {"x"}, {}).output("x"), Code::invalid, "it has no outputs");
}

TEST(HostileOnnx, SplitHasAsManySizesAsOutputs) {
  const auto with = [](const OnnxBytes::Numbers& sizes) {
    return OnnxBytes().input("x", {4}).integers("s", sizes).node("Split", {"x", "s"}, {"a", "b"}).output("a");
  };
  EXPECT_TRUE(import(with({1, 3})).has_value());
  expect_refused(with({1, 1, 2}), Code::invalid, "3 parts for 2 outputs");
  expect_refused(with({std::numeric_limits<std::int64_t>::max(), 1}), Code::invalid, "a part of 9223372036854775807");
}

TEST(HostileOnnx, GroupsOfAConvolutionDoNotOverflow) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 62U;
  for (const std::int64_t groups : {kHalf, 2 * (kHalf - 1) + 1, -kHalf, std::int64_t{1} << 32U, std::int64_t{0}})
    expect_refused(OnnxBytes()
                       .input("x", {1, 4, 2, 2})
                       .input("w", {4, 4, 1, 1})
                       .node("Conv", {"x", "w"}, {"y"}, {{"group", groups}})
                       .output("y"),
                   Code::invalid, "groups");
}

TEST(HostileOnnx, ConstantsTogetherHaveABudget) {
  OnnxBytes file;
  file.integers("shape", {1 << 23});
  for (int i = 0; i < 9; ++i) file.node("ConstantOfShape", {"shape"}, {"c" + std::to_string(i)});
  expect_refused(file.output("c0"), Code::unsupported, kOverBudget);
}

TEST(HostileOnnx, ConstantsThatGrowByJoiningHaveABudget) {
  OnnxBytes file;
  file.floats("c0", {1024}, 1024);
  for (int i = 0; i < 40; ++i) {
    const std::string before = "c" + std::to_string(i);
    file.node("Concat", {before, before}, {"c" + std::to_string(i + 1)}, {{"axis", 0}});
  }
  expect_refused(file.output("c40"), Code::unsupported, kOverBudget);
}

// Each use of a constant as a tensor is a separate weight.
TEST(HostileOnnx, UsesOfAConstantHaveABudget) {
  OnnxBytes file;
  constexpr std::size_t kElements = 1 << 16;
  file.input("y0", {kElements}).floats("c", {kElements}, kElements);
  for (int i = 0; i < 2000; ++i) file.node("Add", {"y" + std::to_string(i), "c"}, {"y" + std::to_string(i + 1)});
  expect_refused(file.output("y2000"), Code::unsupported, kOverBudget);
}

TEST(HostileOnnx, CastsSlicesAndTransposesHaveABudget) {
  for (const char* op : {"Transpose", "Cast", "Add"}) {
    OnnxBytes file;
    file.integers("shape", {1 << 10, 1 << 10}).node("ConstantOfShape", {"shape"}, {"c"});
    for (int i = 0; i < 200; ++i) {
      const std::string result = "r" + std::to_string(i);
      if (op == std::string_view("Cast"))
        file.node(op, {"c"}, {result}, {{"to", 7}});
      else if (op == std::string_view("Add"))
        file.node(op, {"c", "c"}, {result});
      else
        file.node(op, {"c"}, {result});
    }
    expect_refused(file.output("r0"), Code::unsupported, kOverBudget);
  }
}

TEST(HostileOnnx, MatricesThatBecomeNodesHaveABudget) {
  OnnxBytes file;
  file.input("a", {256, 1, 1}).input("b", {256, 1, 1});
  for (int i = 0; i < 400; ++i) file.node("MatMul", {"a", "b"}, {"y" + std::to_string(i)});
  expect_refused(file.output("y0"), Code::unsupported, kOverBudget);
}

// Their loops would run over empty rows.
TEST(HostileOnnx, TensorsWithoutElementsCostNothing) {
  constexpr std::int64_t kRows = std::int64_t{1} << 28U;
  OnnxBytes file;
  file.integers("shape", {kRows, 1, 0}).integers("ids", {0, 0, 0, 0}).node("ConstantOfShape", {"shape"}, {"c"});
  OnnxBytes::Names parts(1000, "c");
  file.node("Concat", parts, {"joined"}, {{"axis", 1}});
  for (int i = 0; i < 1000; ++i) file.node("Gather", {"c", "ids"}, {"g" + std::to_string(i)}, {{"axis", 1}});
  const auto imported = import(file.input("x", {1}).node("Neg", {"x"}, {"y"}).output("y"));
  EXPECT_TRUE(imported.has_value()) << imported.error().message;
}

TEST(HostileOnnx, ListsOfAxesAreAsLongAsThereAreAxes) {
  OnnxBytes file;
  file.input("x", {2, 3}).integers("many", OnnxBytes::Numbers(9, 0)).integers("zeros", OnnxBytes::Numbers(9, 0));
  for (const char* op : {"Squeeze", "ReduceSum", "Reshape"}) {
    OnnxBytes each = file;
    const auto imported = import(each.node(op, {"x", "many"}, {"y"}).output("y"));
    ASSERT_FALSE(imported.has_value()) << op;
    EXPECT_NE(imported.error().message.find("9 axes"), std::string::npos) << imported.error().message;
  }
  expect_refused(file.node("Slice", {"x", "many", "zeros"}, {"y"}).output("y"), Code::invalid, "9 starts for [2, 3]");
}

TEST(HostileOnnx, ProductsOfExtentsFit32Bits) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 29U) - 1;
  OnnxBytes file;
  file.input("x", {1, 1, kMost});
  OnnxBytes::Names parts(9, "x");
  file.node("Concat", parts, {"long"}, {{"axis", 2}}).output("long");
  expect_refused(file, Code::unsupported, "more than 2^32 - 1 entries");
}

// Neighbours are joined pairwise, so each part is copied at most log2(parts) times.
TEST(HostileOnnx, PartsAreJoinedInFewCopies) {
  constexpr int kParts = 256;
  OnnxBytes file;
  OnnxBytes::Names parts;
  for (int i = 0; i < kParts; ++i) {
    parts.push_back("x" + std::to_string(i));
    file.input(parts.back(), {2, 1});
  }
  const auto imported = import(file.node("Concat", parts, {"y"}, {{"axis", 1}}).output("y"));
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  std::uint64_t copied = 0;
  for (const shunt::Node& node : imported->graph.nodes())
    if (node.op == Op::concat) copied += imported->graph.tensor(node.output).operand.shape.elements();
  EXPECT_EQ(imported->outputs.at(0).shape, (Shape{2, kParts}));
  EXPECT_EQ(copied, 2U * kParts * 8U);
}

TEST(HostileOnnx, TheBudgetGrowsWithTheFilesAndDoesNotOverflow) {
  Budget budget;
  EXPECT_TRUE(budget.take(Budget::kLeastBytes / 8, 8).has_value());
  EXPECT_FALSE(budget.take(1, 1).has_value());
  budget.add_file(10);
  EXPECT_TRUE(budget.take(10, Budget::kBytesPerFileByte).has_value());
  EXPECT_FALSE(budget.take(1, 1).has_value());
  EXPECT_FALSE(budget.take(std::numeric_limits<std::uint64_t>::max(), 8).has_value());
  for (int i = 0; i < 2; ++i) budget.add_file(std::numeric_limits<std::uint64_t>::max() - 1);
  EXPECT_TRUE(budget.take(std::uint64_t{1} << 60U, 8).has_value());
  const Status refused = budget.take(std::uint64_t{1} << 60U, 8);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::unsupported);
}

}  // namespace
}  // namespace shunt::onnx
