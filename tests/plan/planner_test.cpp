#include "plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "ops/op.h"
#include "plan/simulated_machine.h"
#include "run/graphs.h"

namespace shunt {
namespace {

using test::branching_graph;
using test::chain_of_linears;
using test::kWeightBytes;
using test::processor_and_gpu;
using test::SeparateDevices;
using test::SimulatedMachine;

TEST(Planner, AnyPlacementByHandGivesAValidPlan) {
  const Graph graph = branching_graph(4, 6);
  for (const bool shared_pool : {false, true}) {
    SeparateDevices machine(3, shared_pool);
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
      std::mt19937 random(seed);
      GivenPlaces places;
      for (std::size_t node = 0; node < graph.nodes().size(); ++node)
        places.device_of_node.push_back(static_cast<std::uint32_t>(random() % 3));
      const auto plan = make_plan({.graph = &graph, .devices = machine.devices, .where = places});
      ASSERT_TRUE(plan.has_value()) << plan.error().message;
      const Status valid = check(*plan, graph);
      EXPECT_TRUE(valid.has_value()) << "seed " << seed << ": " << valid.error().message;
      const bool copies =
          std::ranges::any_of(plan->steps, [](const Step& step) { return step.kind == Step::Kind::transfer; });
      EXPECT_EQ(copies, !shared_pool) << "seed " << seed;
    }
  }
}

// The second device is like the scalar kernels of a processor of which only the SIMD kernels were measured.
TEST(Planner, BelievesWhatWasMeasuredOfTheSameProcessors) {
  const Graph graph = chain_of_linears(4);
  std::vector<sim::Spec> specs(2);
  for (sim::Spec& spec : specs) spec.memory_pool = kHostPool, spec.compute_resource = "cpu";
  SimulatedMachine machine(specs);
  const auto cost_of = [&](std::size_t device, double times_slower, double uncertainty) {
    DeviceInfo info = machine.devices[device]->info();
    info.prior.flops_per_s /= times_slower;
    info.prior.bytes_per_s /= times_slower;
    info.prior.uncertainty = uncertainty;
    return DeviceCost(info, nullptr);
  };
  constexpr double kMeasured = 0.1;
  constexpr double kUnmeasured = 0.9;
  const auto plan_with = [&](double uncertainty_of_second) {
    machine.costs = {cost_of(0, 10, kMeasured), cost_of(1, 1, uncertainty_of_second)};
    return *make_plan({.graph = &graph, .devices = machine.devices, .costs = machine.costs});
  };
  const auto is_on = [](std::uint32_t device) { return testing::Each(testing::Field(&Decision::device, device)); };
  EXPECT_THAT(plan_with(kMeasured).decisions, is_on(1)) << "both were measured";
  const Plan plan = plan_with(kUnmeasured);
  EXPECT_THAT(plan.decisions, is_on(0));
  EXPECT_TRUE(plan.is_measured);
}

TEST(Planner, WantsADeviceMeasuredThatPromisesMoreThanAMeasuredOne) {
  const Graph graph = chain_of_linears(4);
  std::vector<sim::Spec> specs(2);
  for (sim::Spec& spec : specs) spec.memory_pool = kHostPool, spec.compute_resource = "cpu";
  specs[1].rate.flops_per_s *= 100;
  SimulatedMachine machine(specs);
  DeviceInfo unmeasured = machine.devices[1]->info();
  unmeasured.prior.uncertainty = 0.9;
  machine.costs[1] = DeviceCost(unmeasured, nullptr);
  EXPECT_FALSE(make_plan({.graph = &graph, .devices = machine.devices, .costs = machine.costs})->is_measured);
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
    EXPECT_GT(decision.candidates[decision.device].compute_us, 0);
    EXPECT_EQ(decision.candidates[1 - decision.device].reason, Reason::higher_cost);
  }
  const auto json = nlohmann::json::parse(to_json(*plan, graph), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["units"].size(), plan->units.size());
}

TEST(Planner, NoPlacementByHandIsMuchBetterThanItsChoice) {
  std::mt19937 random(1);
  const Graph graph = branching_graph(4096, 1);
  const std::size_t nodes = graph.nodes().size();
  ASSERT_LE(nodes, 8U);
  for (int trial = 0; trial < 10; ++trial) {
    std::vector<sim::Spec> specs(2);
    for (sim::Spec& spec : specs) {
      spec.rate = {.flops_per_s = 1e9 * static_cast<double>(1 + random() % 100),
                   .bytes_per_s = 1e9 * static_cast<double>(1 + random() % 10)};
      spec.launch_us = static_cast<double>(random() % 20);
      spec.link.bytes_per_s = 1e9 * static_cast<double>(1 + random() % 50);
    }
    SimulatedMachine machine(specs);
    PlanRequest request{.graph = &graph, .devices = machine.devices, .where = Search{.margin = 0.0}, .fuse = false};
    const Plan chosen = *make_plan(request);
    EXPECT_TRUE(check(chosen, graph).has_value());
    for (std::uint32_t placement = 0; placement < 1U << nodes; ++placement) {
      GivenPlaces places;
      for (std::size_t node = 0; node < nodes; ++node) places.device_of_node.push_back(placement >> node & 1U);
      request.where = std::move(places);
      EXPECT_LE(chosen.predicted_us, make_plan(request)->predicted_us * 1.1) << "trial " << trial << ": " << placement;
    }
  }
}

TEST(Planner, BudgetsHoldAndLargerOnesAreNoSlower) {
  const Graph graph = chain_of_linears(20);
  sim::Spec fast;
  fast.rate.bytes_per_s = 1e12;
  SimulatedMachine machine({sim::Spec{.rate = {.flops_per_s = 1e11, .bytes_per_s = 1e10}}, fast});
  double before = 1e9;
  for (std::uint64_t step = 0; step <= 20; ++step) {
    const std::uint64_t budget = step * (kWeightBytes + 4096);
    const auto plan = make_plan({.graph = &graph,
                                 .devices = machine.devices,
                                 .where = Search{.margin = 0.0},
                                 .budget_bytes = {kNoBudget, budget}});
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    for (const MemoryUse& use : plan->memory) EXPECT_LE(use.total(), use.pool == kHostPool ? kNoBudget : budget);
    EXPECT_LE(plan->predicted_us, before / 0.97) << "step " << step;
    before = plan->predicted_us;
  }
  const auto alone = make_plan({.graph = &graph, .devices = machine.devices, .where = Search{.margin = 0.0}});
  EXPECT_EQ(alone->steps.size(), 1U);
  EXPECT_LE(before, alone->predicted_us / 0.97);
}

TEST(Planner, AMemoryThatSeveralDevicesTakeFromIsCountedOnce) {
  const Graph graph = chain_of_linears(12);
  sim::Spec fast;
  fast.rate.bytes_per_s = 1e12;
  fast.memory_resource = "gpu";
  SimulatedMachine machine({sim::Spec{.rate = {.flops_per_s = 1e10, .bytes_per_s = 1e9}}, fast, fast});
  for (const std::uint32_t first : {1U, 2U}) {
    PlanRequest request{.graph = &graph, .devices = machine.devices};
    request.budget_bytes = {kNoBudget, 6 * kWeightBytes, 6 * kWeightBytes};
    Search search{.margin = 0.0};
    search.suggested.assign(graph.tensors().size(), kNone);
    for (TensorId tensor = 0; tensor < graph.tensors().size(); ++tensor)
      if (graph.tensor(tensor).operand.kind == TensorKind::weight)
        search.suggested[tensor] = tensor % 2 == 0 ? first : 3 - first;
    request.where = std::move(search);
    const auto plan = make_plan(request);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    std::uint64_t bytes = 0;
    for (const MemoryUse& use : plan->memory) bytes += use.pool == kHostPool ? 0 : use.total();
    EXPECT_LE(bytes, 6 * kWeightBytes);
    EXPECT_GE(bytes, 5 * kWeightBytes);
    request.budget_bytes.front() = 5 * kWeightBytes;
    const auto none = make_plan(request);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, Code::out_of_memory);
  }
}

TEST(Planner, WhatFitsNowhereIsAnErrorWithTheNumbers) {
  const Graph graph = chain_of_linears(2);
  SimulatedMachine machine(std::vector<sim::Spec>(2));
  const auto plan = make_plan({.graph = &graph, .devices = machine.devices, .budget_bytes = {300'000, 100'000}});
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, Code::out_of_memory);
  EXPECT_NE(plan.error().message.find("has a budget of 293.0 KiB"), std::string::npos) << plan.error().message;
  EXPECT_EQ(make_plan({.graph = &graph, .devices = machine.devices, .budget_bytes = {1}}).error().code, Code::invalid);
}

TEST(Planner, TenThousandOpsOnFourDevicesHaveAPlan) {
  const Graph graph = branching_graph(4096, 2000);
  ASSERT_GE(graph.nodes().size(), 9'900U);
  std::vector<sim::Spec> specs(4);
  for (std::size_t i = 0; i < specs.size(); ++i) specs[i].rate.bytes_per_s = 1e10 * static_cast<double>(i + 1);
  SimulatedMachine machine(specs);
  const auto plan = make_plan({.graph = &graph, .devices = machine.devices});
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(check(*plan, graph).has_value());
}

// Weights in the host's memory next to a slow processor; the graph consists of their products with many rows.
class StreamedWeights : public testing::Test {
 protected:
  static Graph products() {
    GraphBuilder builder;
    Tensor x = builder.input("x", DType::F32, {512, 256}, Extent::tokens);
    for (int layer = 0; layer < 6; ++layer)
      x = builder.linear(x, builder.weight("w" + std::to_string(layer), DType::F32, {256, 256}));
    builder.output(x);
    return *std::move(builder).finish();
  }
  // All weights have their home on device 0.
  static PlanRequest request(const Graph& graph, const SimulatedMachine& machine) {
    Search search{.margin = 0.0};
    for (const TensorInfo& tensor : graph.tensors())
      search.homes.push_back(tensor.operand.kind == TensorKind::weight ? 0 : kNone);
    return {.graph = &graph, .devices = machine.devices, .where = std::move(search)};
  }
  static std::size_t copies_of_weights(const Plan& plan, const Graph& graph) {
    return static_cast<std::size_t>(std::ranges::count_if(plan.steps, [&](const Step& step) {
      return step.kind == Step::Kind::transfer && graph.tensor(step.transfer.tensor).operand.kind == TensorKind::weight;
    }));
  }
};

TEST_F(StreamedWeights, AreCopiedForAStepWhereThatIsFasterAndTakeMemoryOnlyMeanwhile) {
  const Graph graph = products();
  const SimulatedMachine machine(processor_and_gpu(1e10));
  PlanRequest asked = request(graph, machine);
  const auto plan = make_plan(asked);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const Status valid = check(*plan, graph);
  EXPECT_TRUE(valid.has_value()) << valid.error().message;
  EXPECT_EQ(copies_of_weights(*plan, graph), 6U);
  const auto gpu = std::ranges::find(plan->memory, plan->devices[1].pool, &MemoryUse::pool);
  EXPECT_EQ(gpu->weight_bytes, 0U);
  const auto host = std::ranges::find(plan->memory, "host", &MemoryUse::pool);
  EXPECT_EQ(host->weight_bytes, 6 * kWeightBytes);

  // If only a few fit at once, they arrive one after the other.
  asked.budget_bytes = {kNoBudget, std::uint64_t{2400} << 10U};
  const auto tight = make_plan(asked);
  ASSERT_TRUE(tight.has_value()) << tight.error().message;
  EXPECT_TRUE(check(*tight, graph).has_value());
  EXPECT_EQ(copies_of_weights(*tight, graph), 6U);
  EXPECT_GT(tight->steps.size(), plan->steps.size());
  EXPECT_LE(std::ranges::find(tight->memory, tight->devices[1].pool, &MemoryUse::pool)->total(), asked.budget_bytes[1]);
}

TEST_F(StreamedWeights, HaveAsManyHomesAsThereAreTensors) {
  const Graph graph = products();
  const SimulatedMachine machine(processor_and_gpu(1e10));
  PlanRequest asked = request(graph, machine);
  std::get<Search>(asked.where).homes.pop_back();
  const auto plan = make_plan(asked);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, Code::invalid);
}

TEST_F(StreamedWeights, StayWhereTheyAreWhenTheLinkIsSlow) {
  const Graph graph = products();
  const SimulatedMachine machine(processor_and_gpu(1e7));
  const auto plan = make_plan(request(graph, machine));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(copies_of_weights(*plan, graph), 0U);
  EXPECT_TRUE(std::ranges::all_of(plan->decisions, [](const Decision& each) { return each.device == 0; }));
}

TEST_F(StreamedWeights, SmallOnesAreKeptByEachDeviceThatReadsThem) {
  GraphBuilder builder;
  Tensor x = builder.input("x", DType::F32, {512, 256}, Extent::tokens);
  x = builder.mul(builder.linear(x, builder.weight("w", DType::F32, {256, 256})),
                  builder.weight("small", DType::F32, {256}));
  builder.output(x);
  const Graph graph = *std::move(builder).finish();
  const SimulatedMachine machine(processor_and_gpu(1e10));
  const auto plan = make_plan(request(graph, machine));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_TRUE(check(*plan, graph).has_value());
  EXPECT_EQ(copies_of_weights(*plan, graph), 1U);
  EXPECT_EQ(std::ranges::find(plan->memory, plan->devices[1].pool, &MemoryUse::pool)->weight_bytes, 1024U);
}

// The link carries a weight in half the time that its home needs to read it.
TEST_F(StreamedWeights, TravelWhileTheirHomeComputes) {
  std::vector<sim::Spec> two = processor_and_gpu(2e10);
  two[0].rate = {.flops_per_s = 1e12, .bytes_per_s = 1e10};
  GraphBuilder builder;
  Tensor x = builder.input("x", DType::F32, {1, 1024}, Extent::tokens);
  for (int layer = 0; layer < 24; ++layer)
    x = builder.linear(x, builder.weight("w" + std::to_string(layer), DType::F32, {1024, 1024}));
  builder.output(x);
  const Graph graph = *std::move(builder).finish();
  const SimulatedMachine machine(two);
  const auto plan = make_plan(request(graph, machine));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const std::size_t copied = copies_of_weights(*plan, graph);
  EXPECT_GT(copied, 8U);
  const double read_us = 24 * 4.2e6 / 1e10 * 1e6;
  EXPECT_LT(plan->predicted_us, 0.6 * read_us) << "two thirds could travel, in a third of that time";
}

TEST_F(StreamedWeights, AreReadWhereTheyAreByWhoSharesTheirMemory) {
  const Graph graph = products();
  std::vector<sim::Spec> unified = processor_and_gpu(1e10);
  unified[1].memory_pool = "host";
  const SimulatedMachine machine(unified);
  const auto plan = make_plan(request(graph, machine));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(copies_of_weights(*plan, graph), 0U);
  EXPECT_TRUE(std::ranges::all_of(plan->decisions, [](const Decision& each) { return each.device == 1; }));
}

TEST(Planner, ThePlanOfOneGraphPlacesTheNodesOfAnother) {
  const Graph graph = branching_graph(4, 3);
  SeparateDevices machine(2);
  GivenPlaces places;
  for (std::size_t node = 0; node < graph.nodes().size(); ++node)
    places.device_of_node.push_back(static_cast<std::uint32_t>(node / 3 % 2));
  const auto plan = make_plan({.graph = &graph, .devices = machine.devices, .where = places});
  EXPECT_EQ(devices_of_nodes(*plan, graph), places.device_of_node);
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

// A norm and three linear ops that read it, as in attention; `others` may read it too.
struct NormReaders {
  explicit NormReaders(const std::function<void(GraphBuilder&, Tensor)>& others) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, {1, 64});
    const Tensor normed = builder.rms_norm_mul(x, builder.weight("norm", DType::F32, {64}));
    for (const char* name : {"q", "k", "v"})
      builder.output(builder.linear(normed, builder.weight(name, DType::F32, {8, 64})));
    others(builder, normed);
    graph = *std::move(builder).finish();
    plan = *make_plan({.graph = &graph, .devices = machine.devices});
  }
  [[nodiscard]] std::ptrdiff_t count(Op op) const { return std::ranges::count(plan.units, op, &Unit::op); }

  SeparateDevices machine{1};
  Graph graph;
  Plan plan;
};

TEST(Planner, WhatAllReadersRepeatIsNotComputedOnItsOwn) {
  const NormReaders alone([](GraphBuilder&, Tensor) {});
  EXPECT_EQ(alone.plan.units.size(), 3U);
  EXPECT_EQ(alone.count(Op::rms_norm_linear), 3);
  EXPECT_TRUE(check(alone.plan, alone.graph).has_value());
}

TEST(Planner, WhatSomebodyReadsFromMemoryIsComputedOnceForAll) {
  const NormReaders added([](GraphBuilder& builder, Tensor normed) { builder.output(builder.neg(normed)); });
  EXPECT_EQ(added.plan.units.size(), 5U);
  EXPECT_EQ(added.count(Op::rms_norm_mul), 1);
  EXPECT_EQ(added.count(Op::linear), 3);
  EXPECT_TRUE(check(added.plan, added.graph).has_value());
  const NormReaders given([](GraphBuilder& builder, Tensor normed) { builder.output(normed); });
  EXPECT_EQ(given.plan.units.size(), 4U);
  EXPECT_EQ(given.count(Op::rms_norm_mul), 1);
  const NormReaders viewed([](GraphBuilder& builder, Tensor normed) {
    builder.output(builder.neg(builder.reshape(normed, {{Attr::dims, Shape{8, 8}}})));
  });
  EXPECT_EQ(viewed.count(Op::rms_norm_mul), 1);
  EXPECT_TRUE(check(viewed.plan, viewed.graph).has_value());
}

TEST(Planner, AFusedRowDoesNotRepeatWhatIsComputedAnyway) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {2, 8});
  const Tensor inner = builder.silu(x);
  builder.output(builder.mul(inner, x));
  builder.output(builder.add(inner, x));
  const Graph graph = *std::move(builder).finish();
  SeparateDevices machine(1);
  const Plan plan = *make_plan({.graph = &graph, .devices = machine.devices});
  EXPECT_EQ(plan.units.size(), 3U);
  EXPECT_EQ(std::ranges::count(plan.units, Op::swiglu, &Unit::op), 0);
}

TEST(Planner, BothProductsOfAGatedUnitRepeatTheNormInOneUnit) {
  const NormReaders gated([](GraphBuilder& builder, Tensor normed) {
    const Tensor gate = builder.linear(normed, builder.weight("gate", DType::F32, {8, 64}));
    const Tensor up = builder.linear(normed, builder.weight("up", DType::F32, {8, 64}));
    builder.output(builder.swiglu(gate, up));
  });
  EXPECT_EQ(gated.plan.units.size(), 4U);
  EXPECT_EQ(gated.count(Op::rms_norm_swiglu), 1);
  EXPECT_EQ(gated.count(Op::rms_norm_linear), 3);
  EXPECT_TRUE(check(gated.plan, gated.graph).has_value());
}

TEST(Planner, PlacementsByHandOutOfRangeAreErrors) {
  const Graph graph = branching_graph(4, 1);
  SeparateDevices machine(1);
  EXPECT_EQ(make_plan({.graph = &graph, .devices = machine.devices, .where = GivenPlaces{{0}}}).error().code,
            Code::invalid);
  EXPECT_EQ(make_plan({.graph = &graph,
                       .devices = machine.devices,
                       .where = GivenPlaces{std::vector<std::uint32_t>(graph.nodes().size(), 1)}})
                .error()
                .code,
            Code::invalid);
}

struct Damage {
  const char* says;  // part of the message
  std::function<void(Plan&)> damage;
};

void expect_broken(const Plan& good, const Graph& graph, const std::vector<Damage>& damages) {
  const Status valid = check(good, graph);
  ASSERT_TRUE(valid.has_value()) << valid.error().message;
  for (std::size_t i = 0; i < damages.size(); ++i) {
    Plan plan = good;
    damages[i].damage(plan);
    const Status found = check(plan, graph);
    ASSERT_FALSE(found.has_value()) << "damage " << i << " should say \"" << damages[i].says << '"';
    EXPECT_EQ(found.error().code, Code::internal);
    EXPECT_NE(found.error().message.find(damages[i].says), std::string::npos)
        << "damage " << i << ": \"" << found.error().message << "\" does not say \"" << damages[i].says << '"';
  }
}

Step& first_of(Plan& plan, Step::Kind kind) { return *std::ranges::find(plan.steps, kind, &Step::kind); }
Residence& first_of(Plan& plan, StorageKind kind) {
  return *std::ranges::find(plan.residences, kind, &Residence::kind);
}

constexpr std::uint32_t kFar = 1U << 20;

// Each case breaks one rule that check() must enforce.
TEST(PlanCheck, FindsBrokenPlans) {
  const Graph graph = branching_graph(4, 3);
  SeparateDevices machine(2);
  GivenPlaces places;
  for (std::size_t node = 0; node < graph.nodes().size(); ++node)
    places.device_of_node.push_back(static_cast<std::uint32_t>(node % 2));
  const PlanRequest request{.graph = &graph, .devices = machine.devices, .where = places};
  constexpr auto kCompute = Step::Kind::compute;
  constexpr auto kTransfer = Step::Kind::transfer;
  expect_broken(
      *make_plan(request), graph,
      {{"unit 1 names", [](Plan& plan) { plan.units[1].nodes.clear(); }},
       {"unit 1 names", [](Plan& plan) { plan.units[1].nodes[0] = kFar; }},
       {"unit 1 names", [](Plan& plan) { plan.units[1].output = kFar; }},
       {"unit 1 names", [](Plan& plan) { plan.units[1].inputs[0] = kFar; }},
       {"unit 1 names", [](Plan& plan) { plan.decisions[1].device = 2; }},
       {"unit 1 names", [](Plan& plan) { plan.decisions[1].candidates[0].device = 2; }},
       {"decisions for", [](Plan& plan) { plan.decisions.pop_back(); }},
       {"copy 0 names", [](Plan& plan) { plan.residences[0].tensor = kFar; }},
       {"copy 0 names", [](Plan& plan) { plan.residences[0].device = 2; }},
       {"step 0 names", [](Plan& plan) { plan.steps[0].device = 2; }},
       {"step 0 names", [](Plan& plan) { plan.steps[0].unit_count = 0; }},
       {"step 0 names", [](Plan& plan) { plan.steps[0].unit_count = ~0U; }},
       {"step 0 names", [](Plan& plan) { plan.steps[0].first_unit = kFar; }},
       {"names a unit", [](Plan& plan) { first_of(plan, kTransfer).transfer.tensor = kFar; }},
       {"names a unit", [](Plan& plan) { first_of(plan, kTransfer).transfer.from = 2; }},
       {"names a unit", [](Plan& plan) { first_of(plan, kTransfer).transfer.to = 2; }},
       {"waits for the later step", [](Plan& plan) { plan.steps[0].after.push_back(0); }},
       {"is computed 2 times", [](Plan& plan) { plan.units[1].nodes = plan.units[0].nodes; }},
       {"is not what node", [](Plan& plan) { plan.units[1].inputs = plan.units.back().inputs; }},
       {"runs on another device", [](Plan& plan) { first_of(plan, kCompute).device ^= 1U; }},
       {"is in no step", [](Plan& plan) { plan.steps.pop_back(); }},
       {"before it is there",
        [](Plan& plan) {
          for (Step& step : plan.steps) step.after.clear();
        }},
       {"where it does not lie",
        [](Plan& plan) { std::erase_if(plan.residences, [](const Residence& copy) { return copy.device == 1; }); }},
       {"which has its content", [](Plan& plan) { first_of(plan, kTransfer).transfer.to ^= 1U; }},
       {"copies 0 bytes", [](Plan& plan) { first_of(plan, kTransfer).transfer.bytes = 0; }},
       {"bytes as value", [](Plan& plan) { --first_of(plan, StorageKind::value).bytes; }},
       {"bytes as weight", [](Plan& plan) { first_of(plan, StorageKind::input).kind = StorageKind::weight; }},
       {"runs past the arena", [](Plan& plan) { first_of(plan, StorageKind::value).offset = 1U << 20; }},
       {"runs past the arena", [](Plan& plan) { first_of(plan, StorageKind::input).offset = 1U << 20; }},
       {"runs past the arena", [](Plan& plan) { first_of(plan, StorageKind::input).offset = ~std::uint64_t{0}; }},
       {"is no multiple of 64",
        [](Plan& plan) {
          for (Plan::PlannedDevice& device : plan.devices) device.arena_bytes += 4;
          first_of(plan, StorageKind::value).offset += 4;
        }},
       {"lie in the same memory", [](Plan& plan) {
          for (Residence& residence : plan.residences) residence.offset = 0;
        }}});
}

// "c" may reuse the memory of "a" only after the copy of "a" to the other device has ended.
TEST(PlanCheck, MemoryIsTakenOverOnlyWhenItsReadersHaveEnded) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {64});
  const Tensor a = builder.silu(x);
  const Tensor b = builder.silu(a);
  const Tensor c = builder.scale(x);
  builder.output(builder.add(b, c));
  const Graph graph = *std::move(builder).finish();
  SeparateDevices machine(2);
  const Plan plan =
      *make_plan({.graph = &graph, .devices = machine.devices, .where = GivenPlaces{{0, 1, 0, 1}}, .fuse = false});
  ASSERT_EQ(plan.find(a.id, 0)->offset, plan.find(c.id, 0)->offset);
  expect_broken(plan, graph, {{"lie in the same memory", [&](Plan& damaged) {
                                 for (std::uint32_t step = 0; step < damaged.steps.size(); ++step)
                                   if (damaged.steps[step].kind == Step::Kind::transfer &&
                                       damaged.steps[step].transfer.tensor == a.id)
                                     for (Step& other : damaged.steps)
                                       if (other.kind == Step::Kind::compute && other.device == 0)
                                         std::erase(other.after, step);
                               }}});
}

TEST(PlanCheck, StateIsReadInTheVersionThatTheGraphSays) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {1, 1, 4});
  const Tensor row = builder.input("row", DType::I32, {1});
  const Tensor pages = builder.input("pages", DType::I32, {1, 1});
  const Tensor cache = builder.state("cache", DType::F32, {2, 1, 1, 4});
  builder.output(builder.copy(cache));
  const Tensor written = builder.cache_write(cache, x, row, row, pages);
  builder.output(builder.copy(written));
  const Graph graph = *std::move(builder).finish();
  SeparateDevices machine(2, true);
  const auto swap = [](std::size_t one, std::size_t other) {
    return [=](Plan& plan) {
      std::swap(plan.units[one], plan.units[other]);
      std::swap(plan.decisions[one], plan.decisions[other]);
    };
  };
  const auto impatient = [](Plan& plan) {
    for (Step& step : plan.steps) step.after.clear();
  };
  expect_broken(*make_plan({.graph = &graph, .devices = machine.devices, .where = GivenPlaces{{0, 0, 0}}}), graph,
                {{"another version", swap(0, 1)}, {"another version", swap(1, 2)}});
  expect_broken(*make_plan({.graph = &graph, .devices = machine.devices, .where = GivenPlaces{{0, 1, 1}}}), graph,
                {{"while it is used", impatient}});
  expect_broken(*make_plan({.graph = &graph, .devices = machine.devices, .where = GivenPlaces{{0, 0, 1}}}), graph,
                {{"before it is there", impatient}});
}

}  // namespace
}  // namespace shunt
