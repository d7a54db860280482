#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "ops/op.h"
#include "run/graphs.h"

namespace shunt {
namespace {

using test::branching_graph;
using test::SeparateDevices;

TEST(Planner, AnyPlacementByHandGivesAValidPlan) {
  const Graph graph = branching_graph(4, 6);
  for (const bool shared_pool : {false, true}) {
    SeparateDevices machine(3, shared_pool);
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
      std::mt19937 random(seed);
      PlanRequest request{.graph = &graph, .devices = machine.devices};
      for (std::size_t node = 0; node < graph.nodes().size(); ++node)
        request.device_of_node.push_back(static_cast<std::uint32_t>(random() % 3));
      const auto plan = make_plan(request);
      ASSERT_TRUE(plan.has_value()) << plan.error().message;
      const Status valid = check(*plan, graph);
      EXPECT_TRUE(valid.has_value()) << "seed " << seed << ": " << valid.error().message;
      const bool copies =
          std::ranges::any_of(plan->steps, [](const Step& step) { return step.kind == Step::Kind::transfer; });
      EXPECT_EQ(copies, !shared_pool) << "seed " << seed;
    }
  }
}

TEST(Planner, EqualInputsGiveEqualPlans) {
  const Graph graph = branching_graph(4, 5);
  SeparateDevices machine(2);
  const PlanRequest request{.graph = &graph, .devices = machine.devices};
  const Plan plan = *make_plan(request);
  EXPECT_EQ(plan, *make_plan(request));
  Plan other = plan;
  ++other.residences.back().offset;
  EXPECT_NE(plan, other);
  EXPECT_NE(to_json(plan, graph), to_json(other, graph));
}

TEST(Planner, NamesThatAreNoUtf8BecomeReplacementsInJson) {
  GraphBuilder builder;
  builder.output(builder.silu(builder.input("x\xff", DType::F32, {4})));
  const Graph graph = *std::move(builder).finish();
  SeparateDevices machine(1);
  const auto json =
      nlohmann::json::parse(to_json(*make_plan({.graph = &graph, .devices = machine.devices}), graph), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["residences"][0]["tensor"], "x\xEF\xBF\xBD");
}

TEST(Planner, SharesMemoryBetweenValuesThatDoNotLiveTogether) {
  const Graph graph = branching_graph(64, 12);
  SeparateDevices machine(1);
  const auto plan = make_plan({.graph = &graph, .devices = machine.devices});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->steps.size(), 1U);
  std::uint64_t sum = 0;
  for (const Residence& residence : plan->residences) sum += residence.bytes;
  EXPECT_LT(plan->devices[0].arena_bytes, sum / 4);
}

TEST(Planner, EveryUnitHasADecisionWithEveryCandidate) {
  const Graph graph = branching_graph(4, 2);
  SeparateDevices machine(2);
  const auto plan = make_plan({.graph = &graph, .devices = machine.devices});
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->decisions.size(), plan->units.size());
  for (const Decision& decision : plan->decisions) {
    ASSERT_EQ(decision.candidates.size(), 2U);
    EXPECT_EQ(decision.reason, Reason::lower_cost);
    EXPECT_EQ(decision.candidates[decision.device].reason, Reason::lower_cost);
    EXPECT_LE(decision.candidates[decision.device].total_us(), decision.candidates[1 - decision.device].total_us());
    EXPECT_EQ(decision.candidates[1 - decision.device].reason, Reason::higher_cost);
  }
  const auto json = nlohmann::json::parse(to_json(*plan, graph), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["units"].size(), plan->units.size());
}

TEST(Planner, FusedFormsAreClaimedWhereTheyAreCheaperAndNotWhenForbidden) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {2, 8});
  builder.output(builder.rms_norm_mul(x, builder.weight("w", DType::F32, {8})));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph.has_value());
  SeparateDevices machine(1);
  const auto fused = make_plan({.graph = &*graph, .devices = machine.devices});
  const auto apart = make_plan({.graph = &*graph, .devices = machine.devices, .fuse = false});
  ASSERT_TRUE(fused.has_value() && apart.has_value());
  ASSERT_EQ(fused->units.size(), 1U);
  EXPECT_EQ(fused->units[0].op, Op::rms_norm_mul);
  EXPECT_EQ(apart->units.size(), 2U);
}

TEST(Planner, PlacementsByHandOutOfRangeAreErrors) {
  const Graph graph = branching_graph(4, 1);
  SeparateDevices machine(1);
  EXPECT_EQ(make_plan({.graph = &graph, .devices = machine.devices, .device_of_node = {0}}).error().code,
            Code::invalid);
  EXPECT_EQ(make_plan({.graph = &graph,
                       .devices = machine.devices,
                       .device_of_node = std::vector<std::uint32_t>(graph.nodes().size(), 1)})
                .error()
                .code,
            Code::invalid);
}

// Each of these breaks one rule that check() must know.
TEST(PlanCheck, FindsBrokenPlans) {
  const Graph graph = branching_graph(4, 3);
  SeparateDevices machine(2);
  PlanRequest request{.graph = &graph, .devices = machine.devices};
  for (std::size_t node = 0; node < graph.nodes().size(); ++node)
    request.device_of_node.push_back(static_cast<std::uint32_t>(node % 2));
  const Plan good = *make_plan(request);
  ASSERT_TRUE(check(good, graph).has_value());

  Plan uncovered = good;
  uncovered.units[1].nodes.clear();
  EXPECT_FALSE(check(uncovered, graph).has_value());

  Plan impatient = good;
  for (Step& step : impatient.steps) step.after.clear();
  EXPECT_FALSE(check(impatient, graph).has_value());

  Plan crowded = good;
  for (Residence& residence : crowded.residences) residence.offset = 0;
  EXPECT_FALSE(check(crowded, graph).has_value());

  Plan cramped = good;
  for (Plan::PlannedDevice& device : cramped.devices) device.arena_bytes = 8;
  EXPECT_FALSE(check(cramped, graph).has_value());

  Plan missing = good;
  std::erase_if(missing.steps, [](const Step& step) { return step.kind == Step::Kind::transfer; });
  for (Step& step : missing.steps) step.after.clear();
  EXPECT_FALSE(check(missing, graph).has_value());
}

}  // namespace
}  // namespace shunt
