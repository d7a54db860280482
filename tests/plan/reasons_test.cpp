// Why a plan has each op where it is, and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "ops/units.h"
#include "plan/planner.h"
#include "plan/simulated_machine.h"
#include "run/graphs.h"

namespace shunt {
namespace {

using test::chain_of_matmuls;
using test::kWeightBytes;
using test::SimulatedMachine;

TEST(Reasons, TheDeviceNamedFirstIsKeptUnlessAnotherGainsMoreThanTheMargin) {
  const Graph graph = chain_of_matmuls(4);
  sim::Spec slow;
  slow.rate.bytes_per_s = 1e9;
  sim::Spec faster = slow;
  faster.rate.bytes_per_s = 1.2e9;
  SimulatedMachine machine({slow, faster});
  for (const auto& [margin, device] : {std::pair(0.5, 0U), std::pair(0.02, 1U)}) {
    const Plan plan = *make_plan({.graph = &graph, .devices = machine.devices, .margin = margin});
    for (const Decision& decision : plan.decisions) {
      EXPECT_EQ(decision.device, device);
      EXPECT_EQ(decision.reason, device == 0 ? Reason::kept : Reason::lower_cost);
      EXPECT_EQ(decision.candidates[device].reason, decision.reason);
      EXPECT_EQ(decision.candidates[1 - device].reason, device == 0 ? Reason::within_margin : Reason::higher_cost);
    }
  }
}

// Each rejected candidate in turn gets what it was not given, and all else stays.
TEST(Reasons, OfRejectionsAreTrue) {
  const Graph graph = chain_of_matmuls(6);
  std::map<Reason, int> seen;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<sim::Spec> specs(3);
    for (sim::Spec& spec : specs) {
      spec.rate = {.flops_per_s = 1e9 * static_cast<double>(10 + random() % 40),
                   .bytes_per_s = 1e9 * static_cast<double>(1 + random() % 10)};
      spec.launch_us = static_cast<double>(random() % 20);
      spec.link.bytes_per_s = 1e9 * static_cast<double>(1 + random() % 20);
    }
    SimulatedMachine machine(specs);
    PlanRequest request{
        .graph = &graph, .devices = machine.devices, .fuse = false, .margin = seed % 2 == 0 ? 0.0 : 0.3};
    const auto budget = [&] { return (random() % 8) * (kWeightBytes + 8192); };  // values and scratch beside weights
    request.budget_bytes = {kNoBudget, budget(), budget()};
    const Plan plan = *make_plan(request);
    bool is_kept = false;
    request.device_of_node = devices_of_nodes(plan, graph);
    for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
      const Decision& decision = plan.decisions[unit];
      const double chosen_us = decision.candidates[decision.device].total_us();
      for (const Candidate& candidate : decision.candidates) {
        if (candidate.device == decision.device) continue;
        ++seen[candidate.reason];
        std::uint32_t& device = request.device_of_node[plan.units[unit].nodes.back()];
        device = candidate.device;
        const auto moved = make_plan(request);
        device = decision.device;
        if (candidate.reason == Reason::higher_cost || candidate.reason == Reason::higher_cost_of_all) {
          EXPECT_EQ(candidate.total_us() >= chosen_us, candidate.reason == Reason::higher_cost);
          EXPECT_TRUE(moved.has_value() || candidate.reason == Reason::higher_cost) << moved.error().message;
          EXPECT_TRUE(!moved || moved->predicted_us * (1 + *request.margin) >= plan.predicted_us * (1 - 1e-6));
        } else if (candidate.reason == Reason::no_memory) {
          ASSERT_FALSE(moved.has_value());
          EXPECT_EQ(moved.error().code, Code::out_of_memory);
          EXPECT_NE(candidate.detail.find(in_units(kWeightBytes)), std::string::npos) << candidate.detail;
        } else {
          EXPECT_EQ(candidate.reason, Reason::within_margin);
          is_kept = true;
        }
      }
    }
    if (!is_kept) continue;
    request.device_of_node.clear();
    request.margin = 0.0;
    const Plan faster = *make_plan(request);
    EXPECT_LT(faster.predicted_us, plan.predicted_us);
    EXPECT_GT(faster.predicted_us * 1.3, plan.predicted_us * (1 - 1e-6));
  }
  for (const Reason reason :
       {Reason::higher_cost, Reason::higher_cost_of_all, Reason::no_memory, Reason::within_margin})
    EXPECT_GT(seen[reason], 10) << name_of(reason);
}

TEST(Reasons, APreferredDeviceRunsWhatItCanAndItsMemoryHolds) {
  const Graph graph = chain_of_matmuls(8);
  sim::Spec slow;
  slow.rate.bytes_per_s = 1e8;
  SimulatedMachine machine({sim::Spec{}, slow});
  PlanRequest request{.graph = &graph, .devices = machine.devices, .preferred = 1};
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
    EXPECT_NE(decision.candidates[1].detail.find(" are left"), std::string::npos) << decision.candidates[1].detail;
  }
}

// Weights would fit by themselves; with the values beside them they do not.
TEST(Reasons, APreferredDeviceThatValuesFillIsShortOfMemoryToo) {
  const Graph graph = chain_of_matmuls(3);
  sim::Spec slow;
  slow.rate.bytes_per_s = 1e8;
  SimulatedMachine machine({sim::Spec{}, slow});
  for (std::uint64_t budget = kWeightBytes / 2; budget < 4 * kWeightBytes; budget += kWeightBytes / 16) {
    SCOPED_TRACE(budget);
    const Plan plan =
        *make_plan({.graph = &graph, .devices = machine.devices, .preferred = 1, .budget_bytes = {kNoBudget, budget}});
    for (const Decision& decision : plan.decisions)
      EXPECT_EQ(decision.reason, decision.device == 1 ? Reason::preferred : Reason::preferred_is_full);
  }
}

}  // namespace
}  // namespace shunt
