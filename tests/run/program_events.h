// Checks of the program events that one device's runs leave in a trace.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/graphs.h"
#include "run/opened_devices.h"
#include "shunt/computation.h"
#include "shunt/runtime.h"

namespace shunt::test {

inline std::unique_ptr<Computation> doubling(const Runtime& runtime) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, Shape{4});
  builder.output(builder.add(x, x));
  auto graph = std::move(builder).finish();
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  auto made = Computation::create(std::move(*graph), runtime, nullptr);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

// Runs a graph of one op three times on the device `id`, and expects its program in the trace each time.
inline void expect_program_events(const std::string& id) {
  constexpr std::size_t kRuns = 3;
  SCOPED_TRACE(id);
  const auto runtime = Runtime::create({.threads = 2, .devices = id, .calibrated = false, .trace = true});
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  const auto computation = doubling(**runtime);
  ASSERT_NE(computation, nullptr);
  const std::array<float, 4> values = {1, 2, 3, 4};
  ASSERT_TRUE(computation->write("x", std::as_bytes(std::span(values))).has_value());
  const std::uint64_t begin_ns = trace::now_ns();
  for (std::size_t run = 0; run < kRuns; ++run) ASSERT_TRUE(computation->run().has_value());
  const std::uint64_t end_ns = trace::now_ns();

  const trace::Recorder& recorder = opened(**runtime).recorder();
  std::size_t programs = 0;
  for (const trace::ExecutionEvent& event : recorder.snapshot()) {
    if (event.kind != trace::Kind::program) continue;
    ++programs;
    EXPECT_EQ(recorder.text_of(event.device), id);
    EXPECT_NE(recorder.text_of(event.what).find("add"), std::string_view::npos);
    EXPECT_EQ(event.plan, 1U);
    EXPECT_GT(event.predicted_us, 0);
    EXPECT_FALSE(event.failed);
    EXPECT_GT(event.duration_ns, 0U);
    if (!id.starts_with("sim")) {
      EXPECT_GE(event.start_ns, begin_ns);
      EXPECT_LE(event.start_ns + event.duration_ns, end_ns);
    }
  }
  EXPECT_EQ(programs, kRuns);
}

// Expects one run of a plan on one device: its program event and, if ops were timed, each op's event inside it.
inline void expect_events_of_run(const trace::Recorder& recorder, const Executable& executable, bool has_ops) {
  const std::vector<trace::ExecutionEvent> events = recorder.snapshot();
  const auto program = std::ranges::find(events, trace::Kind::program, &trace::ExecutionEvent::kind);
  ASSERT_NE(program, events.end());
  const Plan& plan = executable.plan();
  std::uint64_t now_ns = program->start_ns;
  std::size_t ops = 0;
  for (const trace::ExecutionEvent& event : events) {
    if (event.kind != trace::Kind::op) {
      EXPECT_EQ(event.predicted_us > 0, !executable.actual_us().empty()) << "either was as planned, or was not";
      continue;
    }
    ASSERT_LT(ops, plan.units.size());
    EXPECT_TRUE(recorder.text_of(event.what).starts_with(name_of(plan.units[ops++].op)));
    EXPECT_EQ(recorder.text_of(event.device), plan.devices[0].id);
    EXPECT_EQ(event.step, program->step);
    EXPECT_EQ(event.plan, 1U);
    EXPECT_GT(event.predicted_us, 0);
    EXPECT_GE(event.start_ns, now_ns);
    now_ns = event.start_ns + event.duration_ns;
  }
  EXPECT_EQ(ops, has_ops ? plan.units.size() : 0U);
  EXPECT_LE(now_ns, program->start_ns + program->duration_ns);
}

// A graph of many ops on the device `id`, optionally with injected faults.
class ManyOps {
 public:
  explicit ManyOps(const std::string& id, const std::string& faults = {})
      : runtime_(Runtime::create({.threads = 2, .devices = id, .calibrated = false, .trace = true, .faults = faults})) {
    if (!runtime_) {
      ADD_FAILURE() << runtime_.error().message;
      return;
    }
    const std::span<Device* const> devices = opened(**runtime_).handles();
    auto plan = make_plan({.graph = &graph_, .devices = devices});
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    auto executable = Executable::create(graph_, std::move(*plan),
                                         {.devices = devices,
                                          .weights = &weights_,
                                          .state = &state_,
                                          .arenas = &arenas_,
                                          .recorder = &opened(**runtime_).recorder()});
    EXPECT_TRUE(executable.has_value()) << executable.error().message;
    executable_ = std::move(*executable);
    for (std::size_t i = 0; i < kElements; ++i) y_[i] = static_cast<float>(i % 7) - 3.0F;
    EXPECT_TRUE(executable_->write_input(*graph_.find("x"), std::as_bytes(std::span(y_))).has_value());
  }

  [[nodiscard]] bool is_made() const { return executable_ != nullptr; }
  [[nodiscard]] const Executable& executable() const { return *executable_; }
  [[nodiscard]] trace::Recorder& recorder() const { return opened(**runtime_).recorder(); }

  // Returns the first output.
  std::span<const float> run(std::uint32_t step) {
    const Status ran = executable_->run({.parameters = {.tokens = kRows}, .step = step, .profile = true});
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    EXPECT_TRUE(executable_->read_output(0, 0, std::as_writable_bytes(std::span(y_))).has_value());
    return y_;
  }

 private:
  static constexpr std::uint32_t kRows = 4;
  static constexpr std::size_t kElements = std::size_t{kRows} * 16;

  Result<std::unique_ptr<Runtime>> runtime_;
  Graph graph_ = branching_graph(kRows, 3);
  WeightStore weights_{nullptr};
  StateStore state_;
  ArenaStore arenas_;
  std::unique_ptr<Executable> executable_;
  std::array<float, kElements> y_{};
};

// Expects op events in the first two of three runs, and equal results in all three.
inline void expect_op_events(const std::string& id) {
  SCOPED_TRACE(id);
  ManyOps ops(id);
  ASSERT_TRUE(ops.is_made());
  std::vector<float> first;
  for (std::uint32_t run = 0; run < 3; ++run) {
    SCOPED_TRACE(run);
    ops.recorder().clear();
    const std::span<const float> y = ops.run(run);
    if (run == 0) first.assign(y.begin(), y.end());
    EXPECT_TRUE(std::ranges::equal(y, first));
    expect_events_of_run(ops.recorder(), ops.executable(), run < 2);
  }
}

// Expects a fault of an op in the middle to show in the result, however the ops are submitted.
inline void expect_faults_in_result(const std::string& id) {
  SCOPED_TRACE(id);
  ManyOps ops(id, id + " nonfinite at op 2");
  ASSERT_TRUE(ops.is_made());
  EXPECT_FALSE(std::ranges::all_of(ops.run(0), [](float y) { return std::isfinite(y); }));
}

}  // namespace shunt::test
