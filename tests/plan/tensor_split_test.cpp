#include "plan/tensor_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/simulated_machine.h"
#include "run/graphs.h"

namespace shunt {
namespace {

using test::chain_of_linears;
using test::SimulatedMachine;

constexpr std::uint32_t kMatrixRows = 4096;
constexpr std::uint64_t kMatrixBytes = std::uint64_t{kMatrixRows} * kMatrixRows * sizeof(float);

sim::Spec device(double bytes_per_s, double link_bytes_per_s = 1e10) {
  return {.computes = false,
          .rate = {.flops_per_s = 1e15, .bytes_per_s = bytes_per_s},
          .link = {.latency_us = 10, .bytes_per_s = link_bytes_per_s},
          .memory_bytes = std::uint64_t{1} << 34U};
}

struct Chosen {
  std::vector<RowSplit> splits;
  Graph graph;
  Plan plan;
};

// The whole process: split what pays, then plan.
Chosen choose(const Graph& graph, SimulatedMachine& machine, std::vector<std::uint64_t> budgets = {}) {
  const auto request_for = [&](const Graph& placed, std::span<const RowSplit> splits) {
    return PlanRequest{.graph = &placed,
                       .devices = machine.devices,
                       .costs = machine.costs,
                       .where = Search{.suggested = suggestions(placed, splits)},
                       .budget_bytes = budgets};
  };
  const auto plan_with = [&](std::span<const RowSplit> splits) -> Result<Chosen> {
    SHUNT_TRY_ASSIGN(Graph split, split_rows(graph, splits));
    SHUNT_TRY_ASSIGN(Plan plan, make_plan(request_for(split, splits)));
    return Chosen{{splits.begin(), splits.end()}, std::move(split), std::move(plan)};
  };
  const Result<Plan> plan = make_plan(request_for(graph, {}));
  const auto us_of = [&](std::span<const RowSplit> splits) -> Result<double> {
    SHUNT_TRY_ASSIGN(const Chosen its, plan_with(splits));
    return its.plan.predicted_us;
  };
  Result<Chosen> chosen = plan_with(choose_splits(request_for(graph, {}), plan ? &*plan : nullptr, us_of));
  EXPECT_TRUE(chosen.has_value()) << chosen.error().message;
  const Status valid = check(chosen->plan, chosen->graph);
  EXPECT_TRUE(valid.has_value()) << valid.error().message;
  return std::move(*chosen);
}

double us_of_whole(const Graph& graph, SimulatedMachine& machine, std::vector<std::uint64_t> budgets = {}) {
  return make_plan({.graph = &graph, .devices = machine.devices, .costs = machine.costs, .budget_bytes = budgets})
      ->predicted_us;
}

TEST(TensorSplit, EqualDevicesGetEqualPartsAndWorkAtOnce) {
  SimulatedMachine machine({device(1e10), device(1e10)});
  const Graph graph = chain_of_linears(4, kMatrixRows);
  const Chosen chosen = choose(graph, machine);
  ASSERT_EQ(chosen.splits.size(), 4U);
  for (const RowSplit& split : chosen.splits) {
    ASSERT_EQ(split.rows.size(), 2U);
    EXPECT_NEAR(split.rows[0], kMatrixRows / 2, 64);
    EXPECT_EQ(split.rows[0] + split.rows[1], kMatrixRows);
  }
  EXPECT_LT(chosen.plan.predicted_us, 0.55 * us_of_whole(graph, machine));
}

TEST(TensorSplit, FasterDevicesGetMore) {
  SimulatedMachine machine({device(1e10), device(3e10)});
  const Graph graph = chain_of_linears(4, kMatrixRows);
  const Chosen chosen = choose(graph, machine);
  ASSERT_FALSE(chosen.splits.empty());
  const RowSplit& split = chosen.splits.front();
  EXPECT_EQ(split.devices.front(), 1U) << "where all of it was";
  EXPECT_NEAR(split.rows.front(), kMatrixRows * 3 / 4, 128);
  EXPECT_LT(chosen.plan.predicted_us, 0.85 * us_of_whole(graph, machine));
}

TEST(TensorSplit, ThreeDevicesShareToo) {
  SimulatedMachine machine({device(1e10), device(1e10), device(1e10)});
  const Graph graph = chain_of_linears(4, kMatrixRows);
  const Chosen chosen = choose(graph, machine);
  ASSERT_FALSE(chosen.splits.empty());
  EXPECT_EQ(chosen.splits.front().rows.size(), 3U);
  EXPECT_LT(chosen.plan.predicted_us, 0.4 * us_of_whole(graph, machine));
}

TEST(TensorSplit, NothingIsSplitWhereCopiesTakeLonger) {
  SimulatedMachine slow_link({device(1e10), device(1e10, 1e6)});
  EXPECT_TRUE(choose(chain_of_linears(4, kMatrixRows), slow_link).splits.empty());
  SimulatedMachine slow_device({device(1e10), device(1e8)});
  EXPECT_TRUE(choose(chain_of_linears(4, kMatrixRows), slow_device).splits.empty());
}

// The second device is as fast as the first and has memory for two of eight matrices: a quarter of each is better than
// two whole ones.
TEST(TensorSplit, MemoryThatHoldsAPartOfThemHoldsAPartOfEach) {
  SimulatedMachine machine({device(1e10), device(1e10)});
  const Graph graph = chain_of_linears(8, kMatrixRows);
  const std::vector<std::uint64_t> budgets = {kNoBudget, 2 * kMatrixBytes + (1U << 20U)};
  const Chosen chosen = choose(graph, machine, budgets);
  ASSERT_FALSE(chosen.splits.empty());
  for (const MemoryUse& use : chosen.plan.memory)
    if (use.pool == "sim:1") {
      EXPECT_LE(use.total(), budgets[1]);
      EXPECT_GT(use.weight_bytes, budgets[1] / 2);
    }
  EXPECT_LT(chosen.plan.predicted_us, 0.85 * us_of_whole(graph, machine, budgets));
}

TEST(TensorSplit, WhatOneCannotBindItGetsInPartsThatItCan) {
  sim::Spec fast = device(1e12);
  fast.largest_binding_bytes = kMatrixBytes / 3;
  SimulatedMachine machine({device(1e10), fast});
  const Graph graph = chain_of_linears(2, kMatrixRows);
  const Chosen chosen = choose(graph, machine);
  ASSERT_EQ(chosen.splits.size(), 2U);
  for (const RowSplit& split : chosen.splits) {
    EXPECT_EQ(std::accumulate(split.rows.begin(), split.rows.end(), 0U), kMatrixRows);
    EXPECT_GE(split.rows.size(), 3U);
    for (const std::uint32_t rows : split.rows)
      EXPECT_LE(std::uint64_t{rows} * kMatrixRows * 4, fast.largest_binding_bytes);
  }
  for (const Decision& decision : chosen.plan.decisions) EXPECT_EQ(decision.device, 1U);
  EXPECT_LT(chosen.plan.predicted_us, 0.1 * us_of_whole(graph, machine));
}

TEST(TensorSplit, WhatNobodyCanBindRunsAllTheSame) {
  sim::Spec only = device(1e10);
  only.largest_binding_bytes = kMatrixBytes / 2;
  SimulatedMachine machine({only});
  const Graph graph = chain_of_linears(1, kMatrixRows);
  EXPECT_FALSE(make_plan({.graph = &graph, .devices = machine.devices}).has_value());
  EXPECT_EQ(choose(graph, machine).splits.front().rows.size(), 2U);
}

}  // namespace
}  // namespace shunt
