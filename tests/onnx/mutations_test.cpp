// Damaged ONNX files give a useful error or a graph.
#include "mutations.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "onnx/import.h"

namespace shunt::onnx {
namespace {

constexpr int kMutations = 2500;

class MutatedOnnx : public testing::TestWithParam<const char*> {};

TEST_P(MutatedOnnx, IsRefusedOrImported) {
  const auto original = bytes_of_file(SHUNT_TEST_DATA "/onnx/" + std::string(GetParam()) + ".onnx");
  ASSERT_FALSE(original.empty());
  Mutations mutations(original, original.size(), 5);
  int imported = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::vector<std::byte> bytes = mutations.next();
    const auto model = parse_model(bytes);
    if (!model) {
      ASSERT_FALSE(model.error().message.empty()) << "mutation " << i;
      continue;
    }
    const auto graph = import_model(*model, {}, "nowhere");
    if (graph)
      ++imported;
    else
      ASSERT_FALSE(graph.error().message.empty()) << "mutation " << i;
  }
  EXPECT_GT(imported, 0);
  EXPECT_LT(imported, kMutations);
}

INSTANTIATE_TEST_SUITE_P(Files, MutatedOnnx, testing::Values("transformer", "convolutions"),
                         [](const auto& file) { return std::string(file.param); });

// cli/run_graph_test.py compares the results of models that give graphs of more than one kind.
TEST(Onnx, ShapesAreThoseOfTheInputs) {
  const auto bytes = bytes_of_file(SHUNT_TEST_DATA "/onnx/perceptron.onnx");
  const auto model = parse_model(bytes);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto open = import_model(*model, {}, "");
  ASSERT_FALSE(open.has_value());
  EXPECT_EQ(open.error().code, Code::invalid);
  EXPECT_NE(open.error().message.find("input \"x\" has no fixed extent on axis 0"), std::string::npos)
      << open.error().message;
  const auto fixed = import_model(*model, {{"x", Shape{9, 12}}}, "");
  ASSERT_TRUE(fixed.has_value()) << fixed.error().message;
  ASSERT_EQ(fixed->outputs.size(), 2U);
  EXPECT_EQ(fixed->outputs[0].shape, (Shape{9, 7}));
  EXPECT_EQ(fixed->outputs[1].shape, Shape{9});
  EXPECT_EQ(fixed->outputs[1].type, Type::i64);
  const auto other = import_model(*model, {{"y", Shape{1}}, {"x", Shape{9, 12}}}, "");
  ASSERT_FALSE(other.has_value());
  EXPECT_NE(other.error().message.find("no input \"y\""), std::string::npos) << other.error().message;
}

TEST(Onnx, ScalesAreNumbersAboveZero) {
  const auto original = bytes_of_file(SHUNT_TEST_DATA "/onnx/shapes.onnx");
  constexpr std::array<float, 4> kScales{1, 1, 2, 3};  // of resize_12
  const auto* scales = reinterpret_cast<const std::byte*>(kScales.data());
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1.0F}) {
    auto bytes = original;
    const auto place = std::search(bytes.begin(), bytes.end(), scales, scales + sizeof(kScales));
    ASSERT_NE(place, bytes.end());
    std::memcpy(&place[3 * sizeof(float)], &wrong, sizeof(wrong));
    const auto model = parse_model(bytes);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const auto graph = import_model(*model, {}, "");
    ASSERT_FALSE(graph.has_value()) << wrong;
    EXPECT_EQ(graph.error().code, Code::invalid);
    EXPECT_NE(graph.error().message.find("a scale of"), std::string::npos) << graph.error().message;
  }
}

TEST(Onnx, ExternalDataStaysBesideTheModel) {
  auto bytes = bytes_of_file(SHUNT_TEST_DATA "/onnx/external.onnx");
  const std::string_view name = "external.bin";
  const auto* letters = reinterpret_cast<const std::byte*>(name.data());
  const auto place = std::search(bytes.begin(), bytes.end(), letters, letters + name.size());
  ASSERT_NE(place, bytes.end());
  const std::string_view elsewhere = "../../passwd";
  std::memcpy(&*place, elsewhere.data(), elsewhere.size());
  const auto model = parse_model(bytes);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto graph = import_model(*model, {}, SHUNT_TEST_DATA "/onnx");
  ASSERT_FALSE(graph.has_value());
  EXPECT_NE(graph.error().message.find("put it beside the model"), std::string::npos) << graph.error().message;
}

}  // namespace
}  // namespace shunt::onnx
