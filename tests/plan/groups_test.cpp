// Which nodes a plan keeps together.
#include "plan/groups.h"

#include <gtest/gtest.h>

#include "plan/planner.h"
#include "plan/problem.h"
#include "plan/simulated_machine.h"

namespace shunt {
namespace {

TEST(Groups, HaveAllPiecesOfAProductButNotAllUsersOfASmallWeight) {
  GraphBuilder builder;
  const Tensor large = builder.weight("large", DType::F32, {256, 256});
  const Tensor small = builder.weight("small", DType::F32, {256});
  for (const char* piece : {"x0", "x1"})
    builder.output(builder.linear(builder.mul(builder.input(piece, DType::F32, {4, 256}), small), large));
  const Graph graph = *std::move(builder).finish();
  test::SimulatedMachine machine(std::vector<sim::Spec>(2));
  CostCache cache(machine.devices, machine.costs);
  const PlanRequest request{
      .graph = &graph, .devices = machine.devices, .costs = machine.costs, .cost_cache = &cache, .fuse = false};
  const PlanProblem problem(request);
  const std::vector<std::uint32_t> group = group_nodes(problem, {.fuse = false}, kNone).of_node;
  ASSERT_EQ(graph.nodes()[1].op, Op::linear);
  EXPECT_EQ(group[1], group[3]);
  EXPECT_NE(group[0], group[2]);
}

}  // namespace
}  // namespace shunt
