// State that lies in the host's memory, and is copied to a GPU for as long as a plan uses it there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plan/attention_over_caches.h"
#include "plan/planner.h"
#include "plan/simulated_machine.h"

namespace shunt {
namespace {

using test::processor_and_gpu;
using test::SimulatedMachine;

constexpr std::uint32_t kTokens = 256;
constexpr std::uint32_t kPages = 16;
constexpr std::uint64_t kStateBytes = kPages * test::kCachePageBytes;

Graph attention_over_caches() { return test::attention_over_caches(kTokens, kPages); }

// All state has its home on one device.
PlanRequest request_for(const Graph& graph, const SimulatedMachine& machine, std::uint32_t home = 0) {
  Search search{.margin = 0.0};
  for (TensorId tensor = 0; tensor < graph.tensors().size(); ++tensor) {
    const TensorInfo& info = graph.tensor(tensor);
    search.homes.push_back(info.operand.kind == TensorKind::state && info.base == tensor ? home : kNone);
  }
  return {.graph = &graph, .devices = machine.devices, .where = std::move(search), .state_travels = true};
}

std::vector<Transfer> copies_of_state(const Plan& plan) {
  std::vector<Transfer> copies;
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::transfer && step.transfer.copied == Copied::state) copies.push_back(step.transfer);
  return copies;
}

TEST(TravellingState, GoesWhereItIsUsedFasterAndReturns) {
  const Graph graph = attention_over_caches();
  const SimulatedMachine machine(processor_and_gpu(1e10));
  const auto plan = make_plan(request_for(graph, machine));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const Status valid = check(*plan, graph);
  EXPECT_TRUE(valid.has_value()) << valid.error().message;
  const std::vector<Transfer> copies = copies_of_state(*plan);
  ASSERT_EQ(copies.size(), 4U);
  EXPECT_EQ(std::ranges::count(copies, 1U, &Transfer::to), 2);
  for (const Transfer& copy : copies) {
    EXPECT_EQ(copy.bytes, kStateBytes);
    EXPECT_EQ(copy.expected_bytes, kStateBytes / 2) << "half of it is in use, and half of it is written";
  }
  const auto use = [&](const std::string& pool) { return *std::ranges::find(plan->memory, pool, &MemoryUse::pool); };
  EXPECT_EQ(use(plan->devices[0].pool).state_bytes, 2 * kStateBytes);
  EXPECT_EQ(use(plan->devices[1].pool).state_bytes, 0U);
  EXPECT_GE(use(plan->devices[1].pool).value_bytes, 2 * kStateBytes);
}

TEST(TravellingState, StaysWhereTheLinkIsSlowOrItMayNotTravel) {
  const Graph graph = attention_over_caches();
  const SimulatedMachine slow(processor_and_gpu(1e7));
  const SimulatedMachine fast(processor_and_gpu(1e10));
  PlanRequest forbidden = request_for(graph, fast);
  forbidden.state_travels = false;
  for (const PlanRequest& request : {request_for(graph, slow), forbidden}) {
    const auto plan = make_plan(request);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    EXPECT_TRUE(copies_of_state(*plan).empty());
    EXPECT_EQ(plan->decisions.back().device, 0U);
  }
}

// On the processor, which would fit, it takes a hundred times as long.
TEST(TravellingState, LeavesNoGpuWhoseGivenArenaIsTooSmall) {
  const Graph graph = attention_over_caches();
  const SimulatedMachine machine(processor_and_gpu(1e10));
  PlanRequest request = request_for(graph, machine, 1);
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_TRUE(std::ranges::all_of(plan->decisions, [](const Decision& each) { return each.device == 1; }));
  request.arena_bytes = {0, plan->devices[1].arena_bytes};
  request.budget_bytes = {kNoBudget, 4 * kStateBytes};
  EXPECT_TRUE(make_plan(request).has_value());
  request.arena_bytes[1] /= 2;
  const auto smaller = make_plan(request);
  ASSERT_FALSE(smaller.has_value());
  EXPECT_EQ(smaller.error().code, Code::out_of_memory);
}

TEST(TravellingState, IsCheckedToBeTheNewestAndToReturn) {
  const Graph graph = attention_over_caches();
  const SimulatedMachine machine(processor_and_gpu(1e10));
  const Plan good = *make_plan(request_for(graph, machine));
  ASSERT_TRUE(check(good, graph).has_value());
  const auto expect_broken = [&](const char* says, const auto& damage) {
    Plan plan = good;
    damage(plan);
    const Status found = check(plan, graph);
    ASSERT_FALSE(found.has_value()) << says;
    EXPECT_NE(found.error().message.find(says), std::string::npos) << found.error().message;
  };
  ASSERT_EQ(good.steps.back().transfer.copied, Copied::state);
  expect_broken("does not return", [](Plan& plan) { plan.steps.pop_back(); });
  expect_broken("before it is there", [](Plan& plan) { plan.steps.back().after.clear(); });
  expect_broken("when the state has another version",
                [](Plan& plan) { std::swap(plan.steps.back().transfer.from, plan.steps.back().transfer.to); });
}

}  // namespace
}  // namespace shunt
