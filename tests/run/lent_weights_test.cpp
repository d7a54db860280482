// Weights whose memory other plans use between runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "run/graphs.h"
#include "shunt/weights.h"

namespace shunt {
namespace {

constexpr std::uint32_t kLayers = 4;
constexpr std::uint32_t kLent = 2;  // the first ones
constexpr std::uint32_t kLender = 1;

class LentWeights : public testing::Test {
 protected:
  LentWeights() {
    for (std::uint32_t i = 0; i < kLayers; ++i) {
      std::vector<float>& weight = numbers_.emplace_back(std::size_t{test::kWeightRows} * test::kWeightRows, 0.0F);
      for (std::uint32_t row = 0; row < test::kWeightRows; ++row)
        weight[std::size_t{row} * test::kWeightRows + (row + i) % test::kWeightRows] = 1.0F + static_cast<float>(i);
      EXPECT_TRUE(source_
                      .add("w" + std::to_string(i), DType::F32, {test::kWeightRows, test::kWeightRows},
                           std::as_bytes(std::span(weight)))
                      .has_value());
    }
    weights_.emplace(&source_);
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i);
  }

  PlanRequest request() {
    PlanRequest asked{.graph = &graph_,
                      .devices = machine_.devices,
                      .where = FollowWeights{std::vector<std::uint32_t>(graph_.nodes().size(), kLender)},
                      .lent_from = std::vector<std::uint32_t>(graph_.tensors().size(), kNone)};
    for (std::uint32_t i = 0; i < kLent; ++i) asked.lent_from[*graph_.find("w" + std::to_string(i))] = 0;
    return asked;
  }

  std::unique_ptr<Executable> compile(const Graph& graph, const PlanRequest& asked) {
    auto plan = make_plan(asked);
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    auto executable = Executable::create(graph, std::move(*plan),
                                         {.devices = machine_.devices,
                                          .weights = &*weights_,
                                          .state = &state_,
                                          .arenas = &arenas_,
                                          .recorder = &machine_.recorder});
    EXPECT_TRUE(executable.has_value()) << executable.error().message;
    return std::move(*executable);
  }

  // Runs a step and returns how many weights it copied.
  std::size_t run(Executable& executable) {
    machine_.recorder.clear();
    const Status status = executable.run({});
    EXPECT_TRUE(status.has_value()) << status.error().message;
    std::size_t copies = 0;
    for (const trace::ExecutionEvent& event : machine_.recorder.snapshot())
      copies += event.kind == trace::Kind::transfer && event.bytes == test::kWeightBytes;
    return copies;
  }

  void write(Executable& executable) {
    const Status status = executable.write_input(*graph_.find("x"), std::as_bytes(std::span(x_)));
    ASSERT_TRUE(status.has_value()) << status.error().message;
  }

  void expect_products(const Executable& executable) {
    std::array<float, test::kWeightRows> y{};
    ASSERT_TRUE(executable.read_output(0, 0, std::as_writable_bytes(std::span(y))).has_value());
    const std::uint32_t shift = kLayers * (kLayers - 1) / 2;
    for (std::uint32_t i = 0; i < test::kWeightRows; ++i)
      ASSERT_EQ(y[i], 24.0F * x_[(i + shift) % test::kWeightRows]) << i;
  }

  Graph graph_ = test::chain_of_linears(kLayers);
  test::SeparateDevices machine_{2};
  std::deque<std::vector<float>> numbers_;
  MemoryWeights source_;
  std::optional<WeightStore> weights_;
  StateStore state_;
  ArenaStore arenas_;
  std::array<float, test::kWeightRows> x_{};
};

TEST_F(LentWeights, LieInTheArenaAndTakeNoTimeInThePlan) {
  const auto plan = make_plan(request());
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const Status valid = check(*plan, graph_);
  EXPECT_TRUE(valid.has_value()) << valid.error().message;
  const auto lent = std::ranges::count_if(plan->steps, [](const Step& step) { return step.transfer.stays; });
  EXPECT_EQ(lent, kLent);
  const auto use = std::ranges::find(plan->memory, plan->devices[kLender].pool, &MemoryUse::pool);
  EXPECT_EQ(use->weight_bytes, kLayers * test::kWeightBytes);
  EXPECT_GE(plan->devices[kLender].arena_bytes, kLent * test::kWeightBytes);
  EXPECT_LT(use->value_bytes, test::kWeightBytes);

  PlanRequest own = request();
  own.lent_from.clear();
  const auto without = make_plan(own);
  ASSERT_TRUE(without.has_value()) << without.error().message;
  EXPECT_DOUBLE_EQ(plan->predicted_us, without->predicted_us);
}

TEST_F(LentWeights, AreCopiedAgainOnlyAfterOthersUsedTheirMemory) {
  const auto executable = compile(graph_, request());
  write(*executable);
  EXPECT_EQ(run(*executable), kLent);
  expect_products(*executable);
  EXPECT_EQ(run(*executable), 0U);
  expect_products(*executable);

  const Graph other_graph = test::branching_graph(1024, 6);
  const auto other =
      compile(other_graph, {.graph = &other_graph,
                            .devices = machine_.devices,
                            .where = GivenPlaces{{std::vector<std::uint32_t>(other_graph.nodes().size(), kLender)}}});
  const std::vector<float> others_x(std::size_t{1024} * 16, 0.5F);
  ASSERT_TRUE(other->write_input(*other_graph.find("x"), std::as_bytes(std::span(others_x))).has_value());
  ASSERT_TRUE(other->run({.parameters = {.tokens = 1024}}).has_value());
  write(*executable);
  EXPECT_EQ(run(*executable), kLent);
  expect_products(*executable);
  EXPECT_EQ(run(*executable), 0U);
}

TEST_F(LentWeights, AreAloneInTheirMemory) {
  auto plan = make_plan(request());
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const auto step = std::ranges::find_if(plan->steps, [](const Step& each) { return each.transfer.stays; });
  const std::uint64_t offset = plan->find(step->transfer.tensor, kLender)->offset;
  for (Residence& residence : plan->residences)
    if (residence.tensor == graph_.nodes().back().output) residence.offset = offset;
  EXPECT_FALSE(check(*plan, graph_).has_value());
}

TEST_F(LentWeights, ListsHaveAsManyEntriesAsThereAreTensorsAndDevices) {
  PlanRequest asked = request();
  asked.lent_from.pop_back();
  EXPECT_EQ(make_plan(asked).error().code, Code::invalid);
  asked = request();
  asked.lent_from[*graph_.find("w0")] = 2;
  EXPECT_EQ(make_plan(asked).error().code, Code::invalid);
  asked = request();
  asked.arena_bytes = {0};
  EXPECT_EQ(make_plan(asked).error().code, Code::invalid);
}

TEST_F(LentWeights, ArenasOfGivenSizesAreNoLargerAndNoSmaller) {
  PlanRequest asked = request();
  asked.budget_bytes = {kNoBudget, std::uint64_t{16} << 20U};
  asked.arena_bytes = {0, std::uint64_t{4} << 20U};
  const auto plan = make_plan(asked);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->devices[kLender].arena_bytes, asked.arena_bytes[kLender]);
  asked.arena_bytes[kLender] = test::kWeightBytes;
  const auto too_small = make_plan(asked);
  ASSERT_FALSE(too_small.has_value());
  EXPECT_EQ(too_small.error().code, Code::out_of_memory);
}

}  // namespace
}  // namespace shunt
