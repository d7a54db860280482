// Why a plan has each op on its device and not on another.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "plan/groups.h"
#include "plan/planner.h"
#include "plan/problem.h"
#include "plan/simulated_machine.h"
#include "run/graphs.h"

namespace shunt {
namespace {

using test::chain_of_linears;
using test::kWeightBytes;
using test::random_devices;
using test::random_graph;
using test::SimulatedMachine;

TEST(Reasons, TheDeviceNamedFirstIsKeptUnlessAnotherGainsMoreThanTheMargin) {
  const Graph graph = chain_of_linears(4);
  sim::Spec slow;
  slow.rate.bytes_per_s = 1e9;
  sim::Spec faster = slow;
  faster.rate.bytes_per_s = 1.2e9;
  SimulatedMachine machine({slow, faster});
  for (const auto& [margin, device] : {std::pair(0.5, 0U), std::pair(0.02, 1U)}) {
    const Plan plan = *make_plan({.graph = &graph, .devices = machine.devices, .where = Search{.margin = margin}});
    for (const Decision& decision : plan.decisions) {
      EXPECT_EQ(decision.device, device);
      EXPECT_EQ(decision.reason, device == 0 ? Reason::kept : Reason::lower_cost);
      EXPECT_EQ(decision.candidates[device].reason, decision.reason);
      EXPECT_EQ(decision.candidates[1 - device].reason, device == 0 ? Reason::within_margin : Reason::higher_cost);
    }
  }
}

// The part of a plan's time that the search counts.
double counted_us(const Plan& plan) { return plan.predicted_us - plan.memory_wait_us; }

// Returns the plan's placement with the group of a unit moved to `device`.
GivenPlaces with_unit_on(const PlanRequest& request, const Plan& plan, std::size_t unit, std::uint32_t device) {
  GivenPlaces places{devices_of_nodes(plan, *request.graph)};
  const std::vector<std::uint32_t> before = places.device_of_node;
  const Groups groups = group_nodes(PlanProblem(request), {.fuse = request.fuse, .apart = before}, kNone);
  const std::uint32_t group = groups.of_node[plan.units[unit].nodes.back()];
  for (NodeId node = 0; node < before.size(); ++node)
    if (groups.of_node[node] == group) places.device_of_node[node] = device;
  return places;
}

// Forces each rejected candidate in turn and keeps everything else: the whole plan must then take as much longer as the
// explanation says, and the reason must be true.
TEST(Reasons, AndDifferencesAreThoseOfPlansWithTheOpForcedThere) {
  std::map<Reason, int> seen;
  int compared = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SimulatedMachine machine(random_devices(random, 2 + seed % 2));
    const Graph graph = seed % 4 < 2 ? chain_of_linears(6) : random_graph(random);
    const double margin = seed % 2 == 0 ? 0.0 : 0.3;
    PlanRequest request{.graph = &graph, .devices = machine.devices, .where = Search{.margin = margin}};
    if (seed % 4 < 2) {
      request.budget_bytes.assign(machine.devices.size(), 0);
      for (std::uint64_t& bytes : request.budget_bytes)
        bytes = (random() % 8) * (kWeightBytes + 8192);  // values and scratch memory next to weights
      request.budget_bytes.front() = kNoBudget;
    }
    Plan plan = *make_plan(request);
    explain(request, plan);
    for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
      const Decision& decision = plan.decisions[unit];
      EXPECT_EQ(decision.candidates[decision.device].added_us, 0);
      EXPECT_EQ(decision.reason == Reason::others_are_full,
                std::ranges::count(decision.candidates, Reason::no_memory, &Candidate::reason) + 1 ==
                    std::ssize(decision.candidates));
      for (const Candidate& candidate : decision.candidates) {
        if (candidate.device == decision.device) continue;
        ++seen[candidate.reason];
        PlanRequest forced = request;
        forced.where = with_unit_on(request, plan, unit, candidate.device);
        const auto moved = make_plan(forced);
        if (candidate.reason == Reason::no_memory) {
          EXPECT_FALSE(candidate.added_us.has_value());
          ASSERT_FALSE(moved.has_value());
          EXPECT_EQ(moved.error().code, Code::out_of_memory);
          continue;
        }
        ASSERT_TRUE(candidate.added_us.has_value()) << name_of(candidate.reason);
        ASSERT_TRUE(moved.has_value()) << moved.error().message;
        ++compared;
        EXPECT_NEAR(counted_us(*moved) - counted_us(plan), *candidate.added_us, 1e-6 * plan.predicted_us)
            << "unit " << unit << " on " << candidate.device;
        if (candidate.reason == Reason::higher_cost) {
          EXPECT_GE(*candidate.added_us, 0);
        } else if (candidate.reason == Reason::not_tried) {
          EXPECT_LT(*candidate.added_us, 0);
        } else {
          EXPECT_EQ(candidate.reason, Reason::within_margin);
          EXPECT_GT(margin, 0);
          EXPECT_GE((counted_us(plan) + *candidate.added_us) * (1 + margin), counted_us(plan) * (1 - 1e-6));
        }
      }
    }
  }
  EXPECT_GT(compared, 2000);
  for (const Reason reason : {Reason::higher_cost, Reason::no_memory, Reason::within_margin})
    EXPECT_GT(seen[reason], 50) << name_of(reason);
  EXPECT_LT(seen[Reason::not_tried], 50);
}

TEST(Reasons, APreferredDeviceRunsWhatItCanAndItsMemoryHolds) {
  const Graph graph = chain_of_linears(8);
  sim::Spec slow;
  slow.rate.bytes_per_s = 1e8;
  SimulatedMachine machine({sim::Spec{}, slow});
  PlanRequest request{.graph = &graph, .devices = machine.devices, .where = Search{.preferred = 1}};
  const Plan all = *make_plan(request);
  for (const Decision& decision : all.decisions) {
    EXPECT_EQ(decision.device, 1U);
    EXPECT_EQ(decision.reason, Reason::preferred);
    EXPECT_EQ(decision.candidates[0].reason, Reason::not_preferred);
  }
  request.budget_bytes = {kNoBudget, 5 * kWeightBytes};
  const Plan half = *make_plan(request);
  EXPECT_EQ(std::ranges::count(half.decisions, 1U, &Decision::device), 4);
  for (const Decision& decision : half.decisions) {
    EXPECT_EQ(decision.candidates[1].reason, decision.device == 1 ? Reason::preferred : Reason::no_memory);
    EXPECT_EQ(decision.reason, decision.device == 1 ? Reason::preferred : Reason::preferred_is_full);
    if (decision.device == 1) continue;
    EXPECT_TRUE(decision.candidates[1].detail.starts_with("needs ")) << decision.candidates[1].detail;
    EXPECT_NE(decision.candidates[1].detail.find(" are free"), std::string::npos) << decision.candidates[1].detail;
  }
}

// The weights alone would fit; together with the values they do not.
TEST(Reasons, APreferredDeviceThatValuesFillIsShortOfMemoryToo) {
  const Graph graph = chain_of_linears(3);
  sim::Spec slow;
  slow.rate.bytes_per_s = 1e8;
  SimulatedMachine machine({sim::Spec{}, slow});
  for (std::uint64_t budget = kWeightBytes / 2; budget < 4 * kWeightBytes; budget += kWeightBytes / 16) {
    SCOPED_TRACE(budget);
    const Plan plan = *make_plan({.graph = &graph,
                                  .devices = machine.devices,
                                  .where = Search{.preferred = 1},
                                  .budget_bytes = {kNoBudget, budget}});
    for (const Decision& decision : plan.decisions)
      EXPECT_EQ(decision.reason, decision.device == 1 ? Reason::preferred : Reason::preferred_is_full);
  }
}

}  // namespace
}  // namespace shunt
