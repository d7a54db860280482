#include "plan/simulation.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/groups.h"
#include "plan/planner.h"
#include "plan/problem.h"
#include "plan/simulated_machine.h"
#include "run/graphs.h"

namespace shunt {
namespace {

// For any placement, in one memory or several, the plan takes as long as the evaluator says, except for memory waits.
TEST(Simulation, TheSearchCountsWhatThePlanTakes) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<sim::Spec> specs = test::random_devices(random, 2 + seed % 2);
    if (seed % 3 == 0) specs.back().memory_pool = kHostPool;
    const test::SimulatedMachine machine(specs);
    const Graph graph = test::random_graph(random);
    GivenPlaces places;
    for (NodeId node = 0; node < graph.nodes().size(); ++node)
      places.device_of_node.push_back(static_cast<std::uint32_t>(random() % specs.size()));
    const PlanRequest request{.graph = &graph, .devices = machine.devices, .where = places};
    const auto plan = make_plan(request);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    const PlanProblem problem(request);
    const Groups groups = group_nodes(problem, {.apart = places.device_of_node}, kNone);
    std::vector<std::uint32_t> device_of_group(groups.problem.groups);
    for (NodeId node = 0; node < graph.nodes().size(); ++node)
      device_of_group[groups.of_node[node]] = places.device_of_node[node];
    const double counted_us = Evaluator(groups.problem)(device_of_group).us;
    EXPECT_NEAR(counted_us, plan->predicted_us - plan->memory_wait_us, 1e-6 * counted_us);
  }
}

TEST(CopyWindow, WaitsForTheUsersOfWhatHasNoRoomBesides) {
  CopyWindow window;
  EXPECT_EQ(window.add(0, 40, 100), kNone);
  EXPECT_EQ(window.add(1, 40, 100), kNone);
  EXPECT_EQ(window.add(1, 20, 100), kNone);
  EXPECT_EQ(window.add(2, 30, 100), 0U);
  EXPECT_EQ(window.add(3, 10, 100), 0U) << "later copies do not pass earlier ones";
  EXPECT_EQ(window.add(4, 200, 100), 3U) << "one that is too long waits for all before it";
  EXPECT_EQ(window.add(4, 10, 100), 3U) << "those of one user are there together";
}

}  // namespace
}  // namespace shunt
