// Plans on simulated devices: how long they take, and how a run ends when a device fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "devices/sim/device.h"
#include "run/executable.h"
#include "run/graphs.h"
#include "shunt/trace.h"
#include "shunt/weights.h"
#include "trace/recorder.h"
#include "trace/recording.h"

namespace shunt {
namespace {

using sim::Spec;
using sim::VirtualClock;
using test::branching_graph;

struct SimMachine {
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices;
  WeightStore weights{nullptr};
  StateStore state;
  ArenaStore arenas;
  trace::Recorder recorder;

  // Only device 1 has the faults.
  explicit SimMachine(std::size_t count, const Faults& faults = {}) {
    recorder.set_enabled(true);
    for (std::size_t number = 0; number < count; ++number) {
      Spec spec{.id = "sim:" + std::to_string(number), .memory_bytes = 1 << 20};
      if (number == 1) spec.faults = faults;
      owned.push_back(sim::make_sim_device(spec, clock, &recorder));
      devices.push_back(owned.back().get());
    }
  }

  Result<std::unique_ptr<Executable>> compile(const Graph& graph, const std::vector<std::uint32_t>& placement) {
    auto plan = make_plan({.graph = &graph, .devices = devices, .where = GivenPlaces{placement}});
    EXPECT_TRUE(plan.has_value());
    return Executable::create(
        graph, *plan,
        {.devices = devices, .weights = &weights, .state = &state, .arenas = &arenas, .recorder = &recorder});
  }
};

constexpr std::uint32_t kTokenRows = 3;

Status write(Executable& executable) {
  std::vector<float> x(std::size_t{kTokenRows} * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3.5F;
  return executable.write_input(*executable.graph().find("x"), std::as_bytes(std::span(x)));
}

Status run(Executable& executable, std::optional<std::chrono::nanoseconds> timeout = {}) {
  SHUNT_TRY(write(executable));
  return executable.run({.parameters = {.tokens = kTokenRows}, .timeout = timeout});
}

std::vector<float> outputs_of(const Executable& executable) {
  std::vector<float> values(std::size_t{2} * kTokenRows * 16);
  const auto bytes = std::as_writable_bytes(std::span(values));
  EXPECT_TRUE(executable.read_output(0, 0, bytes.first(bytes.size() / 2)).has_value());
  EXPECT_TRUE(executable.read_output(1, 0, bytes.last(bytes.size() / 2)).has_value());
  return values;
}

std::vector<std::uint32_t> in_turn(const Graph& graph, std::uint32_t devices) {
  std::vector<std::uint32_t> placement;
  for (std::uint32_t node = 0; node < graph.nodes().size(); ++node) placement.push_back(node % devices);
  return placement;
}

// Computes on one device, so every number is computed in the order of the graph.
std::vector<float> expected(const Graph& graph) {
  SimMachine machine(1);
  const auto executable = std::move(*machine.compile(graph, in_turn(graph, 1)));
  EXPECT_TRUE(run(*executable).has_value());
  return outputs_of(*executable);
}

// Returns the time of a run on the virtual clock, in microseconds.
double time_of_run(SimMachine& machine, Executable& executable) {
  EXPECT_TRUE(write(executable).has_value());
  const auto start = machine.clock->now();
  EXPECT_TRUE(executable.run({.parameters = {.tokens = kTokenRows}}).has_value());
  return std::chrono::duration<double, std::micro>(machine.clock->now() - start).count();
}

TEST(SimulatedRun, OfAChainTakesTheTimeThatWasPredicted) {
  GraphBuilder builder;
  Tensor x = builder.input("x", DType::F32, {kTokenRows, 16}, Extent::tokens);
  for (int link = 0; link < 12; ++link) x = builder.silu(x);
  builder.output(x);
  const Graph graph = *std::move(builder).finish();
  for (const std::uint32_t devices : {1U, 2U, 3U}) {
    SimMachine machine(devices);
    const auto executable = std::move(*machine.compile(graph, in_turn(graph, devices)));
    EXPECT_EQ(executable->plan().steps.size(), devices == 1 ? 1U : 23U);
    EXPECT_NEAR(time_of_run(machine, *executable), executable->plan().predicted_us, 0.1);
  }
}

TEST(SimulatedRun, OfAnyPlacementIsRightAndTakesTheTimeThatWasPredicted) {
  const Graph graph = branching_graph(kTokenRows, 5);
  const std::vector<float> right = expected(graph);
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<std::uint32_t> placement;
    for (std::size_t node = 0; node < graph.nodes().size(); ++node)
      placement.push_back(static_cast<std::uint32_t>(random() % 3));
    double first_time = 0;
    for (int repeat = 0; repeat < 2; ++repeat) {
      SimMachine machine(3);
      const auto executable = std::move(*machine.compile(graph, placement));
      const double time = time_of_run(machine, *executable);
      EXPECT_NEAR(time, executable->plan().predicted_us, 0.1);
      EXPECT_EQ(outputs_of(*executable), right);
      if (repeat == 0) first_time = time;
      EXPECT_EQ(time, first_time) << "the same again";
    }
  }
}

// Each op of device 1 in turn is the one that fails.
class FailingRun : public testing::Test {
 protected:
  const Graph graph_ = branching_graph(kTokenRows, 3);
  const std::vector<std::uint32_t> placement_ = in_turn(graph_, 3);
  const std::vector<float> right_ = expected(graph_);

  [[nodiscard]] std::uint64_t ops() const { return std::uint64_t(std::ranges::count(placement_, 1U)); }

  // Runs until the fault and returns the error.
  static Error failure_of(Executable& executable, std::optional<std::chrono::nanoseconds> timeout = {}) {
    const Status status = run(executable, timeout);
    EXPECT_FALSE(status.has_value());
    return status ? Error{} : status.error();
  }

  static void expect_nothing_kept(SimMachine& machine, std::unique_ptr<Executable> executable) {
    executable.reset();
    machine.arenas = ArenaStore();
    for (const Device* device : machine.devices) EXPECT_EQ(device->memory_available(), device->info().memory_bytes);
  }
};

TEST_F(FailingRun, EndsWithTheLossOfADeviceWhereverItHappens) {
  ASSERT_GT(ops(), 3U);
  for (std::uint64_t op = 0; op < ops(); ++op) {
    SCOPED_TRACE(op);
    SimMachine machine(3, {.lost_at_op = op});
    auto executable = std::move(*machine.compile(graph_, placement_));
    EXPECT_EQ(failure_of(*executable).code, Code::device_lost);
    EXPECT_EQ(machine.devices[1]->health().status.error().code, Code::device_lost);
    EXPECT_TRUE(machine.devices[0]->health().status.has_value());
    EXPECT_EQ(failure_of(*executable).code, Code::device_lost) << "and so does the next";
    EXPECT_FALSE(machine.clock->advance()) << "nothing is left to happen";
    expect_nothing_kept(machine, std::move(executable));
  }
}

TEST_F(FailingRun, EndsWithTheTimeOutOfAProgramThatHangs) {
  for (std::uint64_t op = 0; op < ops(); ++op) {
    SCOPED_TRACE(op);
    SimMachine machine(3, {.hangs_at_op = op});
    auto executable = std::move(*machine.compile(graph_, placement_));
    const Error error = failure_of(*executable, std::chrono::milliseconds(1));
    EXPECT_EQ(error.code, Code::timed_out);
    EXPECT_NE(error.message.find("on sim:1"), std::string::npos) << error.message;
    EXPECT_EQ(machine.devices[1]->health().epoch, 1U);
    expect_nothing_kept(machine, std::move(executable));
  }
}

TEST_F(FailingRun, EndsByTheWatchdogWhereNobodySetATime) {
  SimMachine machine(3, {.hangs_at_op = 1});
  const auto executable = std::move(*machine.compile(graph_, placement_));
  EXPECT_EQ(failure_of(*executable).code, Code::device_lost);
}

TEST_F(FailingRun, EndsWithALateErrorAndTheNextRunIsRight) {
  for (std::uint64_t op = 0; op < ops(); ++op) {
    SCOPED_TRACE(op);
    SimMachine machine(3, {.error_at_op = op});
    auto executable = std::move(*machine.compile(graph_, placement_));
    EXPECT_EQ(failure_of(*executable).code, Code::internal);
    std::vector<trace::Kind> failed;
    for (const trace::ExecutionEvent& event : machine.recorder.snapshot())
      if (event.failed) failed.push_back(event.kind);
    EXPECT_EQ(failed, (std::vector{trace::Kind::program, trace::Kind::run}));
    EXPECT_TRUE(run(*executable).has_value());
    EXPECT_EQ(outputs_of(*executable), right_);
    expect_nothing_kept(machine, std::move(executable));
  }
}

TEST_F(FailingRun, IsNotMadeWhereMemoryFails) {
  bool made = false;
  for (std::uint64_t allocations = 0; !made; ++allocations) {
    ASSERT_LT(allocations, 100U);
    SimMachine machine(3, {.allocation_fails = allocations});
    auto executable = machine.compile(graph_, placement_);
    made = executable.has_value();
    EXPECT_EQ(made, allocations > 0) << "an arena is all that it needs";
    if (!made) {
      EXPECT_EQ(executable.error().code, Code::out_of_memory);
      EXPECT_NE(executable.error().message.find("arena on sim:1"), std::string::npos) << executable.error().message;
    }
    expect_nothing_kept(machine, made ? std::move(*executable) : nullptr);
  }
}

TEST_F(FailingRun, SpreadsWhatIsNoNumber) {
  SimMachine machine(3, {.nonfinite_at_op = 0});
  const auto executable = std::move(*machine.compile(graph_, placement_));
  EXPECT_TRUE(run(*executable).has_value());
  const std::vector<float> values = outputs_of(*executable);
  EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return std::isnan(value); }));
  EXPECT_TRUE(run(*executable).has_value());
  EXPECT_EQ(outputs_of(*executable), right_);
}

// Two chains of matrix products whose results are joined (examples/two_towers).
TEST(SimulatedRun, TwoTowersAreComputedAtOnce) {
  constexpr std::uint32_t kWidth = 1024;
  const std::vector<float> matrix(std::size_t{kWidth} * kWidth);
  MemoryWeights source;
  GraphBuilder builder;
  std::vector<Tensor> towers;
  for (const std::string tower : {"image", "text"}) {
    Tensor x = builder.input(tower, DType::F32, {4, kWidth});
    for (int layer = 0; layer < 8; ++layer) {
      const std::string name = tower + std::to_string(layer);
      ASSERT_TRUE(source.add(name, DType::F32, {kWidth, kWidth}, std::as_bytes(std::span(matrix))));
      x = builder.silu(builder.linear(x, builder.weight(name, DType::F32, {kWidth, kWidth})));
    }
    towers.push_back(x);
  }
  builder.output(builder.linear(towers[0], towers[1]));
  const Graph graph = std::move(*std::move(builder).finish());

  trace::Recorder recorder;
  recorder.set_enabled(true);
  const auto clock = std::make_shared<VirtualClock>();
  std::vector<std::unique_ptr<Device>> owned;
  for (const double bytes_per_s : {100e9, 60e9})
    owned.push_back(sim::make_sim_device({.id = "sim:" + std::to_string(owned.size()),
                                          .computes = false,
                                          .rate = {.flops_per_s = 1e12, .bytes_per_s = bytes_per_s}},
                                         clock, &recorder));
  const std::vector<Device*> devices = {owned[0].get(), owned[1].get()};
  auto plan = make_plan({.graph = &graph, .devices = devices, .where = Search{.margin = 0.05}});
  ASSERT_TRUE(plan);
  const double predicted_us = plan->predicted_us;
  WeightStore weights(&source);
  StateStore state;
  ArenaStore arenas;
  const auto executable = Executable::create(
      graph, *std::move(plan),
      {.devices = devices, .weights = &weights, .state = &state, .arenas = &arenas, .recorder = &recorder});
  ASSERT_TRUE(executable);
  const std::uint64_t begin_ns = devices[0]->now_ns();
  ASSERT_TRUE((*executable)->run({}));
  EXPECT_NEAR(static_cast<double>(devices[0]->now_ns() - begin_ns) * 1e-3, predicted_us, 1);
  const trace::ExecutionSummary summary = trace::summarize(trace::recording_of(recorder));
  ASSERT_FALSE(summary.overlaps.empty());
  EXPECT_EQ(summary.overlaps[0].second, "sim:1");
  EXPECT_GT(summary.overlaps[0].of_shorter, 0.3) << trace::to_text(summary);
}

}  // namespace
}  // namespace shunt
