#include "graph/row_split.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shunt {
namespace {

constexpr std::uint32_t kColumns = 8;
constexpr std::uint32_t kRows = 12;

// x + down(silu(gate(norm(x))) * up(norm(x)))
Graph block() {
  GraphBuilder builder;
  const auto weight = [&](const char* name, const Shape& shape) { return builder.weight(name, DType::F32, shape); };
  const Tensor x = builder.input("x", DType::F32, {4, kColumns}, Extent::tokens);
  const Tensor normalized = builder.mul(builder.rms_norm(x), weight("norm", {kColumns}));
  const Tensor gate = builder.linear(normalized, weight("gate", {kRows, kColumns}));
  const Tensor up = builder.linear(normalized, weight("up", {kRows, kColumns}));
  const Tensor inner = builder.mul(builder.silu(gate), up);
  builder.name(inner, "inner");
  const Tensor sum = builder.add(x, builder.linear(inner, weight("down", {kColumns, kRows})));
  builder.name(sum, "sum");
  builder.output(sum);
  return *std::move(builder).finish();
}

std::size_t count_of(const Graph& graph, Op op) {
  return static_cast<std::size_t>(std::ranges::count(graph.nodes(), op, &Node::op));
}

NodeId producer_of(const Graph& graph, std::string_view name) { return graph.tensor(*graph.find(name)).producer; }

TEST(SplitRows, PartsStaySplitThroughElementwiseOpsAndAreThenPutTogether) {
  const RowSplit splits[] = {{.weight = "gate", .rows = {8, 4}, .devices = {}},
                             {.weight = "up", .rows = {8, 4}, .devices = {}}};
  const auto graph = split_rows(block(), splits);
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(count_of(*graph, Op::linear), 5U);
  EXPECT_EQ(count_of(*graph, Op::silu), 2U);
  EXPECT_EQ(count_of(*graph, Op::concat), 1U);
  EXPECT_EQ(count_of(*graph, Op::rms_norm), 2U) << "one for each part";
  EXPECT_EQ(graph->nodes()[producer_of(*graph, "inner")].op, Op::concat);
  EXPECT_EQ(graph->tensor(*graph->find("inner")).operand.shape, (Shape{4, kRows}));
  EXPECT_FALSE(graph->find("gate").has_value());
  const TensorInfo& rows = graph->tensor(*graph->find("gate[8:12]"));
  EXPECT_EQ(rows.operand.shape, (Shape{4, kColumns}));
  EXPECT_EQ(rows.rows_of, "gate");
  EXPECT_EQ(rows.first_row, 8U);
  ASSERT_EQ(graph->outputs().size(), 1U);
  EXPECT_EQ(graph->tensor(graph->outputs()[0]).name, "sum");
  // The whole second part comes before the first.
  const std::span<const Node> nodes = graph->nodes();
  for (NodeId node = 0; node < nodes.size(); ++node)
    if (nodes[node].name.ends_with("[0]")) {
      EXPECT_GT(node, producer_of(*graph, "inner[1]"));
    }
}

TEST(SplitRows, WhatIsSplitInAnotherWayIsPutTogetherBefore) {
  const RowSplit splits[] = {{.weight = "gate", .rows = {8, 4}, .devices = {}},
                             {.weight = "up", .rows = {4, 4, 4}, .devices = {}}};
  const auto graph = split_rows(block(), splits);
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(count_of(*graph, Op::linear), 6U);
  EXPECT_EQ(count_of(*graph, Op::concat), 3U);
  EXPECT_EQ(graph->nodes()[producer_of(*graph, "inner")].op, Op::mul);
}

TEST(SplitRows, WithoutSplitsAGraphStaysAsItIs) {
  const Graph graph = block();
  const RowSplit elsewhere[] = {{.weight = "of another graph", .rows = {1, 1}, .devices = {}}};
  const auto same = split_rows(graph, elsewhere);
  ASSERT_TRUE(same.has_value()) << same.error().message;
  ASSERT_EQ(same->nodes().size(), graph.nodes().size());
  for (NodeId node = 0; node < graph.nodes().size(); ++node) {
    EXPECT_EQ(same->nodes()[node].name, graph.nodes()[node].name);
    EXPECT_EQ(same->nodes()[node].op, graph.nodes()[node].op);
  }
}

TEST(SplitRows, PartsThatAreThereAlreadyStay) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, kColumns});
  builder.output(builder.linear(x, builder.weight_rows("gate", DType::F32, 4, 8, kColumns)));
  builder.output(builder.linear(x, builder.weight("up", DType::F32, {kRows, kColumns})));
  const RowSplit up[] = {{.weight = "up", .rows = {8, 4}, .devices = {}}};
  const auto graph = split_rows(*std::move(builder).finish(), up);
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  const TensorInfo& part = graph->tensor(*graph->find("gate[4:12]"));
  EXPECT_EQ(part.rows_of, "gate");
  EXPECT_EQ(part.first_row, 4U);
}

TEST(SplitRows, OtherRowsThanTheWeightHasAreAnError) {
  const RowSplit splits[] = {{.weight = "gate", .rows = {8, 8}, .devices = {}}};
  const auto graph = split_rows(block(), splits);
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, Code::invalid);
  EXPECT_EQ(graph.error().message, "weight \"gate\"[12, 8] is split into parts of 16 rows in all");
}

}  // namespace
}  // namespace shunt
