#include <gtest/gtest.h>

#include "graph/fusion.h"
#include "ops/expansion.h"
#include "ops/op.h"
#include "shunt/graph.h"

namespace shunt {
namespace {

TEST(GraphBuilder, TheFirstErrorSticksAndNamesTheNode) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {2, 3});
  const Tensor bad = builder.linear(x, builder.weight("w", DType::F32, {4, 5}));
  builder.output(builder.add(bad, bad));
  const auto graph = std::move(builder).finish();
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, Code::invalid);
  EXPECT_EQ(graph.error().message, "linear: columns of x F32[2, 3] and weight F32[4, 5] differ (node \"linear.0\")");
}

TEST(GraphBuilder, AGraphWithoutOutputsAndTwoTensorsOfOneNameAreErrors) {
  GraphBuilder empty;
  EXPECT_FALSE(std::move(empty).finish().has_value());
  GraphBuilder twice;
  twice.input("x", DType::F32, {1});
  twice.output(twice.silu(twice.input("x", DType::F32, {1})));
  const auto graph = std::move(twice).finish();
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().message, "two tensors are named \"x\"");
}

TEST(GraphBuilder, NumbersThatAreNoRowsAreRefused) {
  const auto error_of = [](const auto& add) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, {2, 4});
    add(builder, x);
    builder.output(builder.silu(x));
    const auto graph = std::move(builder).finish();
    return graph ? "none" : graph.error().message;
  };
  EXPECT_EQ(error_of([](GraphBuilder&, Tensor) {}), "none");
  const auto says = [&](std::string_view part, const auto& add) {
    EXPECT_NE(error_of(add).find(part), std::string::npos) << error_of(add);
  };
  for (const int number : {static_cast<int>(ops().size()), 255})
    says(" is no op; there are ",
         [&](GraphBuilder& builder, Tensor x) { builder.add_node(static_cast<Op>(number), std::span(&x, 1)); });
  says("200 is no dtype", [](GraphBuilder& builder, Tensor) { builder.state("s", static_cast<DType>(200), {4}); });
  says("200 is no dtype", [](GraphBuilder& builder, Tensor) { builder.weight("w", static_cast<DType>(200), {4}); });
  says("3 is no extent",
       [](GraphBuilder& builder, Tensor) { builder.input("y", DType::F32, {4}, static_cast<Extent>(3)); });
  says("attribute to is 200, which is no dtype",
       [](GraphBuilder& builder, Tensor x) { builder.copy(x, {{Attr::to, static_cast<DType>(200)}}); });
  says("250 is no attribute", [](GraphBuilder& builder, Tensor x) { builder.copy(x, {{static_cast<Attr>(250), 1U}}); });
  says("attribute code",
       [](GraphBuilder& builder, Tensor x) { builder.add_node(Op::custom, std::span(&x, 1), {{Attr::code, 1U}}); });
}

TEST(GraphBuilder, NoSumOfSizesOverflows) {
  const auto error_of = [](std::initializer_list<Shape> shapes) {
    GraphBuilder builder;
    int name = 0;
    for (const Shape& shape : shapes) builder.input(std::to_string(name++), DType::F32, shape);
    const auto graph = std::move(builder).finish();
    return graph.error().message;
  };
  constexpr std::uint32_t kHalf = 1U << 27U;  // tensors [2^27, 2^26] of 2^56 bytes
  EXPECT_EQ(error_of({{kHalf, kHalf / 2}, {kHalf, kHalf / 2}}), "the graph has no outputs");
  EXPECT_NE(error_of({{kHalf, kHalf / 2}, {kHalf, kHalf / 2}, {1}}).find("bytes together"), std::string::npos);
  // 2^96 rows without elements: no product of some of the extents overflows.
  constexpr std::uint32_t kMost = 0xFFFFFFFFU;
  EXPECT_NE(error_of({{kMost, kMost, kMost, 0}}).find("does not fit 63 bits"), std::string::npos);
  EXPECT_EQ(error_of({{kMost, 0}}), "the graph has no outputs");
}

TEST(GraphBuilder, NamesThatItMakesAreUnlikeAllOthers) {
  GraphBuilder builder;
  const Tensor x = builder.input("silu.0", DType::F32, {4});
  const Tensor y = builder.silu(x);
  builder.name(x, "x");
  const Tensor z = builder.input("silu.0", DType::F32, {4});
  builder.output(builder.add(y, z));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(graph->tensor(y.id).name, "silu.0'");
  EXPECT_EQ(graph->find("silu.0"), z.id);
  EXPECT_EQ(graph->find("x"), x.id);
}

TEST(GraphBuilder, AWeightNamedTwiceIsOneTensor) {
  GraphBuilder builder;
  const Tensor first = builder.weight("w", DType::F32, {3});
  EXPECT_EQ(builder.weight("w", DType::F32, {3}).id, first.id);
  EXPECT_EQ(builder.weight("w", DType::F16, {3}).id, kNone);
}

TEST(GraphBuilder, ViewsShareTheStorageOfTheirBase) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 6});
  const Tensor cut = builder.slice(builder.slice(x, {{Attr::axis, 0U}, {Attr::begin, 1U}, {Attr::count, 3U}}),
                                   {{Attr::axis, 1U}, {Attr::begin, 2U}, {Attr::count, 2U}});
  builder.output(builder.scale(cut));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->tensor(cut.id).base, x.id);
  EXPECT_EQ(graph->tensor(cut.id).offset, 1U * 6 + 2);
  EXPECT_EQ(graph->tensor(cut.id).operand.strides[0], 6U);
}

TEST(GraphBuilder, ReshapeOfAStridedViewIsAnErrorThatSaysWhatToDo) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 6});
  const Tensor turned = builder.permute(x, {{Attr::axes, Shape{1, 0}}});
  builder.output(builder.reshape(turned, {{Attr::dims, Shape{24}}}));
  const auto graph = std::move(builder).finish();
  ASSERT_FALSE(graph.has_value());
  EXPECT_NE(graph.error().message.find("copy it first"), std::string::npos);
}

// A state "cache" with the inputs needed to write it.
class State : public testing::Test {
 protected:
  Tensor write(Tensor state) { return builder_.cache_write(state, x_, row_, row_, pages_); }
  Tensor read(Tensor state) {
    return builder_.copy(builder_.slice(state, {{Attr::axis, 0U}, {Attr::begin, 0U}, {Attr::count, 1U}}));
  }
  void expect_outdated(std::string_view node, std::string_view used) {
    const auto graph = std::move(builder_).finish();
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, Code::invalid);
    EXPECT_EQ(graph.error().message, std::string(node) + ": \"" + std::string(used) +
                                         "\" is no longer the newest version of state \"cache\"; use what the op that "
                                         "changed it returned");
  }

  GraphBuilder builder_;
  Tensor x_ = builder_.input("x", DType::F32, {1, 1, 4});
  Tensor row_ = builder_.input("row", DType::I32, {1});
  Tensor pages_ = builder_.input("pages", DType::I32, {1, 1});
  Tensor cache_ = builder_.state("cache", DType::F32, {2, 1, 1, 4});
};

TEST_F(State, IsReadBeforeAndAfterEachChange) {
  builder_.output(read(cache_));
  const Tensor second = write(write(cache_));
  builder_.output(read(second));
  const auto graph = std::move(builder_).finish();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(graph->version_of(graph->nodes().back().inputs[0]), second.id);
}

TEST_F(State, TwoChangesOfOneVersionAreRefused) {
  write(cache_);
  builder_.output(read(write(cache_)));
  expect_outdated("cache_write.1", "cache");
}

TEST_F(State, AnOldVersionCannotBeRead) {
  const Tensor first = write(cache_);
  write(first);
  builder_.output(read(first));
  expect_outdated("slice.2", "cache_write.0");
}

TEST_F(State, NorThroughAViewThatWasMadeBefore) {
  const Tensor view = builder_.slice(cache_, {{Attr::axis, 0U}, {Attr::begin, 0U}, {Attr::count, 1U}});
  write(cache_);
  builder_.output(builder_.copy(view));
  expect_outdated("copy.2", "slice.0");
}

TEST_F(State, IsNotReadLaterByAFusedRow) {
  const Tensor normed = builder_.rms_norm(cache_);
  write(cache_);
  builder_.output(builder_.mul(normed, builder_.weight("w", DType::F32, {4})));
  builder_.output(builder_.rms_norm_mul(write(builder_.state("other", DType::F32, {2, 1, 1, 4})),
                                        builder_.weight("w", DType::F32, {4})));
  const auto graph = std::move(builder_).finish();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  const auto fused = find_fusions(*graph, Op::rms_norm_mul);
  ASSERT_EQ(fused.size(), 1U);
  EXPECT_EQ(fused[0].output, graph->outputs()[1]);
}

TEST(Expansions, EveryFusedRowParsesAndInfersLikeItsExpansion) {
  std::size_t fused = 0;
  for (const OpInfo& row : ops())
    if (row.is_fused()) {
      ++fused;
      EXPECT_TRUE(parse_expansion(row).has_value()) << row.name;
    }
  EXPECT_GE(fused, 4U);
}

TEST(Expansions, BrokenTextIsAnErrorWithThePlace) {
  for (const char* text : {"", "x", "add(x", "add(x, y) z", "add(x, q)", "nope(x)", "add(x,, y)"}) {
    OpInfo row = info_of(Op::swiglu);
    constexpr std::string_view kInputs[] = {"x", "y"};
    row.inputs = kInputs;
    row.expansion = text;
    EXPECT_FALSE(parse_expansion(row).has_value()) << text;
  }
}

// Fused rows are added as their expansions, and found again.
TEST(Fusion, FindsWhatTheBuilderExpanded) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {2, 8});
  const Tensor normed = builder.rms_norm_mul(x, builder.weight("n", DType::F32, {8}), {{Attr::epsilon, 0.25F}});
  const Tensor gated = builder.swiglu(normed, x);
  builder.output(builder.linear_add(gated, builder.weight("w", DType::F32, {8, 8}), x));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->nodes().size(), 6U);
  const auto norms = find_fusions(*graph, Op::rms_norm_mul);
  ASSERT_EQ(norms.size(), 1U);
  EXPECT_EQ(norms[0].nodes.size(), 2U);
  EXPECT_EQ(norms[0].attributes.f32(Attr::epsilon), 0.25F);
  EXPECT_EQ(norms[0].output, normed.id);
  EXPECT_EQ(find_fusions(*graph, Op::swiglu).size(), 1U);
  const auto sums = find_fusions(*graph, Op::linear_add);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].inputs[2], x.id);
  EXPECT_TRUE(find_fusions(*graph, Op::rotary_cache_write).empty());
}

TEST(Fusion, AnInnerResultMayHaveOtherReaders) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {2, 8});
  const Tensor inner = builder.silu(x);
  builder.output(builder.mul(inner, x));
  builder.output(builder.add(inner, x));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(find_fusions(*graph, Op::swiglu).size(), 1U);
}

// The experts of a layer as models/decoder/feed_forward_block.cpp builds them.
TEST(Fusion, FindsTheExpertsOfALayer) {
  GraphBuilder builder;
  const Tensor input = builder.input("x", DType::F32, {2, 8});
  const Tensor x = builder.rms_norm_mul(input, builder.weight("norm", DType::F32, {8}));
  const Tensor scores = builder.input("scores", DType::F32, {2, 4});
  const Tensor residual = builder.input("residual", DType::F32, {2, 8});
  const Tensor ids = builder.top_k(scores, {{Attr::k, 2U}});
  const Tensor weights = builder.softmax(builder.take(scores, ids), {});
  const Tensor gate = builder.linear_experts(x, builder.weight("gate", DType::F32, {4, 6, 8}), ids, {}, {});
  const Tensor up = builder.linear_experts(x, builder.weight("up", DType::F32, {4, 6, 8}), ids, {}, {});
  const Tensor hidden = builder.swiglu(gate, up);
  const Tensor down = builder.linear_experts(hidden, builder.weight("down", DType::F32, {4, 8, 6}), ids, {}, {});
  const Tensor result = builder.add(builder.weighted_sum(down, weights), residual);
  builder.output(result);
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph.has_value());
  const auto gated = find_fusions(*graph, Op::experts_swiglu);
  ASSERT_EQ(gated.size(), 1U);
  EXPECT_EQ(gated[0].output, hidden.id);
  EXPECT_EQ(gated[0].nodes.size(), 4U);
  const auto normalized = find_fusions(*graph, Op::rms_norm_experts_swiglu);
  ASSERT_EQ(normalized.size(), 1U);
  EXPECT_EQ(normalized[0].inputs[0], input.id);
  EXPECT_EQ(normalized[0].nodes.size(), 6U);
  const auto sums = find_fusions(*graph, Op::experts_sum);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].output, result.id);
  EXPECT_EQ(sums[0].inputs, (std::vector<TensorId>{down.id, scores.id, ids.id, residual.id}));
}

TEST(Fusion, WhatAnExpansionSaysTwiceIsOneNodeOrTwo) {
  for (const bool twice : {false, true}) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, {2, 8});
    const Tensor norm = builder.weight("norm", DType::F32, {8});
    const Tensor first = builder.rms_norm_mul(x, norm);
    const Tensor second = twice ? builder.rms_norm_mul(x, norm) : first;
    const Tensor gate = builder.linear(first, builder.weight("gate", DType::F32, {4, 8}));
    builder.output(builder.swiglu(gate, builder.linear(second, builder.weight("up", DType::F32, {4, 8}))));
    const auto graph = std::move(builder).finish();
    ASSERT_TRUE(graph.has_value());
    const std::vector<Unit> found = find_fusions(*graph, Op::rms_norm_swiglu);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].nodes.size(), graph->nodes().size());
  }
}

}  // namespace
}  // namespace shunt
