#include "run/executable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "devices/faulty.h"
#include "devices/wrapped_device.h"
#include "run/graphs.h"

namespace shunt {
namespace {

using test::branching_graph;
using test::SeparateDevices;

struct Stores {
  WeightStore weights;
  StateStore state;
  ArenaStore arenas;
  explicit Stores(WeightSource* source = nullptr) : weights(source) {}
};

std::unique_ptr<Executable> compile(const Graph& graph, SeparateDevices& machine, Stores& stores, const Where& where) {
  auto plan = make_plan({.graph = &graph, .devices = machine.devices, .where = where});
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  auto executable = Executable::create(graph, std::move(*plan),
                                       {.devices = machine.devices,
                                        .weights = &stores.weights,
                                        .state = &stores.state,
                                        .arenas = &stores.arenas,
                                        .recorder = &machine.recorder});
  EXPECT_TRUE(executable.has_value()) << executable.error().message;
  return std::move(*executable);
}

std::vector<float> numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 2000) / 1000.0F - 1.0F;
  return values;
}

// Runs with the current inputs and returns two outputs of `size` elements.
std::vector<float> run(Executable& executable, std::size_t size, std::uint32_t rows) {
  const Status status = executable.run({.parameters = {.tokens = rows}});
  EXPECT_TRUE(status.has_value()) << status.error().message;
  std::vector<float> both(2 * size);
  for (std::size_t output = 0; output < 2; ++output)
    EXPECT_TRUE(executable.read_output(output, 0, std::as_writable_bytes(std::span(both).subspan(output * size, size)))
                    .has_value());
  return both;
}

std::vector<float> run(Executable& executable, const std::vector<float>& x, std::uint32_t rows) {
  EXPECT_TRUE(executable.write_input(*executable.graph().find("x"), std::as_bytes(std::span(x))).has_value());
  return run(executable, x.size(), rows);
}

// The same kernels run on the same numbers, so any placement gives the same bits.
TEST(Executable, AnyPlacementGivesTheSameNumbers) {
  const Graph graph = branching_graph(4, 6);
  const std::vector<float> x = numbers(64, 1);
  SeparateDevices one(1);
  Stores stores;
  const std::vector<float> expected =
      run(*compile(graph, one, stores, GivenPlaces{std::vector<std::uint32_t>(graph.nodes().size(), 0)}), x, 4);
  for (const bool shared_pool : {false, true})
    for (std::uint32_t seed = 0; seed < 25; ++seed) {
      SeparateDevices machine(3, shared_pool);
      Stores own;
      std::mt19937 random(seed);
      std::vector<std::uint32_t> placement;
      for (std::size_t node = 0; node < graph.nodes().size(); ++node)
        placement.push_back(static_cast<std::uint32_t>(random() % 3));
      auto executable = compile(graph, machine, own, GivenPlaces{placement});
      EXPECT_EQ(run(*executable, x, 4), expected) << "seed " << seed;
      EXPECT_EQ(run(*executable, x.size(), 4), expected) << "second run, seed " << seed;
    }
}

// Of two executables that share an arena, the first lets go of it for a larger one, and takes that when it runs again.
TEST(Executable, LetsGoOfItsArenasForLargerOnes) {
  const Graph graph = branching_graph(4, 6);
  const std::vector<float> x = numbers(64, 1);
  SeparateDevices machine(2);
  Stores stores;
  std::vector<std::uint32_t> placement(graph.nodes().size());
  for (std::size_t node = 0; node < placement.size(); ++node) placement[node] = node % 2;
  const auto executable = compile(graph, machine, stores, GivenPlaces{placement});
  const std::vector<float> expected = run(*executable, x, 4);
  const std::uint64_t bytes = stores.arenas.bytes_on(*machine.devices[0]);
  EXPECT_GT(bytes, 0U);
  executable->unbind();
  EXPECT_FALSE(executable->is_bound());
  stores.arenas.release(*machine.devices[0]);
  EXPECT_EQ(stores.arenas.bytes_on(*machine.devices[0]), 0U);
  const auto larger = stores.arenas.acquire(3 * bytes, *machine.devices[0]);
  ASSERT_TRUE(larger.has_value());
  EXPECT_EQ(stores.arenas.bytes(), 3 * bytes + stores.arenas.bytes_on(*machine.devices[1]));
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(executable->bind().has_value());
    EXPECT_TRUE(executable->is_bound());
    EXPECT_EQ(run(*executable, x, 4), expected) << "inputs are written again, for the arenas were others'";
    EXPECT_EQ(run(*executable, x.size(), 4), expected);
  }
  EXPECT_EQ(stores.arenas.bytes(), 3 * bytes + stores.arenas.bytes_on(*machine.devices[1]));
}

// Computes asynchronously, as a GPU does: advance() waits for it. Notes how many events others had recorded by then.
class WorksByItself final : public test::WrappedDevice {
 public:
  WorksByItself(Device& inner, const trace::Recorder& recorder)
      : WrappedDevice(inner), recorder_(recorder), info_(inner.info()) {
    info_.type = DeviceType::discrete;
  }
  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  bool advance(std::chrono::nanoseconds patience) override {
    if (!events_before_) events_before_ = recorder_.snapshot().size();
    patience_.push_back(patience);
    return inner().advance(patience);
  }

  void forget() {
    events_before_.reset();
    patience_.clear();
  }
  [[nodiscard]] std::span<const std::chrono::nanoseconds> patience() const { return patience_; }
  [[nodiscard]] std::optional<std::size_t> events_before() const { return events_before_; }

 private:
  const trace::Recorder& recorder_;
  DeviceInfo info_;
  std::optional<std::size_t> events_before_;
  std::vector<std::chrono::nanoseconds> patience_;
};

// With two devices at work, the end of one is noticed promptly although the other is being waited for.
TEST(Executable, OneOfSeveralDevicesIsNotWaitedForLong) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 16}, Extent::tokens);
  builder.output(builder.silu(x));
  builder.output(builder.scale(x, {{Attr::factor, 0.5F}}));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph);
  const trace::Recorder recorder;
  SeparateDevices machine(2);
  WorksByItself first(*machine.devices[0], recorder);
  WorksByItself second(*machine.devices[1], recorder);
  machine.devices = {&first, &second};
  Stores stores;
  const auto executable = compile(*graph, machine, stores, GivenPlaces{{0, 1}});
  first.forget();
  run(*executable, numbers(64, 3), 4);
  ASSERT_FALSE(first.patience().empty());
  EXPECT_LT(first.patience().front(), std::chrono::milliseconds(1)) << "the second is at work too";
  const auto alone = compile(*graph, machine, stores, GivenPlaces{{0, 0}});
  first.forget();
  run(*alone, numbers(64, 3), 4);
  ASSERT_FALSE(first.patience().empty());
  EXPECT_EQ(first.patience().front(), kPatience);
  EXPECT_GT(alone->actual_us().front(), 0);
}

TEST(Executable, TheProcessorComputesWhileOthersDo) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 16}, Extent::tokens);
  builder.output(builder.silu(x));
  builder.output(builder.scale(x, {{Attr::factor, 0.5F}}));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph);
  const SeparateDevices machine(1);
  SeparateDevices apart(2);
  WorksByItself gpu(*apart.devices[1], machine.recorder);
  apart.devices = {&gpu, machine.devices[0]};
  Stores stores;
  const auto executable = compile(*graph, apart, stores, GivenPlaces{{0, 1}});
  gpu.forget();
  run(*executable, numbers(64, 3), 4);
  EXPECT_EQ(gpu.events_before(), 1U) << "programs that the processor had run when the GPU was first waited for";
  const std::vector<Step>& steps = executable->plan().steps;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (steps[step].kind != Step::Kind::compute) continue;
    const bool is_known = executable->actual_us()[step] > 0;
    EXPECT_EQ(is_known, steps[step].device == 1) << "the GPU may have ended long before the processor looked";
  }
}

// Keeps the order of what it is given, and notes for each read and submission how many submissions had ended.
class RunsInOrder final : public test::WrappedDevice {
 public:
  RunsInOrder(Device& inner, bool in_order) : WrappedDevice(inner), in_order_(in_order), info_(inner.info()) {
    info_.type = DeviceType::discrete;
  }
  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] bool runs_in_order() const override { return in_order_; }
  // The host cannot address its memory.
  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse use) override {
    SHUNT_TRY_ASSIGN(auto buffer, inner().allocate(bytes, use));
    return std::make_unique<Hidden>(std::move(buffer));
  }
  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return inner().write(seen(to), from);
  }
  [[nodiscard]] Event copy_from_peer(Device&, const Binding& from, const Binding& to) override {
    return write(to, from.buffer->host().subspan(from.offset, from.bytes));
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    const Event event(this);
    works_.push_back({.event = event, .work = [this, from = seen(from), to] { return inner().read(from, to).wait(); }});
    reads_after_.push_back(ended_);
    return event;
  }
  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    std::vector<ProgramOp> ops(request.ops.begin(), request.ops.end());
    for (ProgramOp& op : ops) {
      for (Binding& input : op.inputs) input = seen(input);
      op.output = seen(op.output);
    }
    ProgramRequest seen_request = request;
    seen_request.ops = ops;
    seen_request.results = {};
    return inner().prepare(seen_request);
  }
  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    const Event event(this);
    works_.push_back({.event = event,
                      .work = [this, &program, submission] { return inner().submit(program, submission).wait(); },
                      .is_submission = true});
    submissions_after_.push_back(ended_);
    return event;
  }
  // Does the oldest work.
  bool advance(std::chrono::nanoseconds) override {
    if (works_.empty()) return false;
    Work oldest = std::move(works_.front());
    works_.pop_front();
    Status status = oldest.work();
    ended_ += oldest.is_submission ? 1 : 0;
    oldest.event.complete(std::move(status));
    return true;
  }

  [[nodiscard]] const std::vector<int>& reads_after() const { return reads_after_; }
  [[nodiscard]] const std::vector<int>& submissions_after() const { return submissions_after_; }

 private:
  struct Hidden final : Buffer {
    explicit Hidden(std::unique_ptr<Buffer> its) : buffer(std::move(its)) {}
    [[nodiscard]] std::uint64_t bytes() const override { return buffer->bytes(); }
    [[nodiscard]] std::span<std::byte> host() override { return {}; }
    std::unique_ptr<Buffer> buffer;
  };
  struct Work {
    Event event;
    std::function<Status()> work;
    bool is_submission = false;
  };
  static Binding seen(Binding binding) {
    if (auto* hidden = dynamic_cast<Hidden*>(binding.buffer)) binding.buffer = hidden->buffer.get();
    return binding;
  }

  bool in_order_;
  DeviceInfo info_;
  std::deque<Work> works_;
  int ended_ = 0;
  std::vector<int> reads_after_;
  std::vector<int> submissions_after_;
};

// Two steps on a GPU, the first of which the processor also waits for.
TEST(Executable, WhatADeviceRunsInOrderIsGivenToItWithoutWaiting) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 16}, Extent::tokens);
  const Tensor on_gpu = builder.silu(x);
  const Tensor on_processor = builder.scale(on_gpu, {{Attr::factor, 0.5F}});
  const Tensor on_both = builder.add(builder.silu(on_gpu), on_processor);
  builder.output(on_both);
  builder.output(builder.scale(on_both, {{Attr::factor, 2.0F}}));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph);
  const std::vector<float> input = numbers(64, 3);
  SeparateDevices one(1);
  Stores alone;
  const std::vector<float> expected = run(*compile(*graph, one, alone, GivenPlaces{{0, 0, 0, 0, 0}}), input, 4);
  for (const bool in_order : {false, true}) {
    const SeparateDevices machine(1, true);
    SeparateDevices apart(2);
    RunsInOrder gpu(*apart.devices[1], in_order);
    apart.devices = {&gpu, machine.devices[0]};
    Stores stores;
    const auto executable = compile(*graph, apart, stores, GivenPlaces{{0, 1, 0, 0, 0}});
    EXPECT_EQ(run(*executable, input, 4), expected);
    EXPECT_EQ(gpu.reads_after().front(), in_order ? 0 : 1) << "submissions that had ended before the first value came";
    EXPECT_EQ(gpu.submissions_after().back(), static_cast<int>(gpu.submissions_after().size()) - 1)
        << "the last one reads what the processor makes of the one before";
  }
}

// Notes what it was told to fetch.
class IsTold final : public test::WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  void prefetch(const Program& next) override { told_.push_back(&next); }
  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    submitted_.push_back(&program);
    told_before_.push_back(told_.size());
    return inner().submit(program, submission);
  }
  [[nodiscard]] const std::vector<const Program*>& told() const { return told_; }
  [[nodiscard]] const std::vector<const Program*>& submitted() const { return submitted_; }
  [[nodiscard]] const std::vector<std::size_t>& told_before() const { return told_before_; }

 private:
  std::vector<const Program*> told_;
  std::vector<const Program*> submitted_;
  std::vector<std::size_t> told_before_;
};

TEST(Executable, AProcessorThatWaitsForOthersIsToldWhatComesNext) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 16}, Extent::tokens);
  const Tensor first = builder.scale(builder.silu(x), {{Attr::factor, 0.5F}});
  builder.output(first);
  builder.output(builder.scale(builder.silu(first), {{Attr::factor, 3.0F}}));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph);
  const SeparateDevices machine(1, true);
  IsTold processor(*machine.devices[0]);
  SeparateDevices apart(2);
  WorksByItself gpu(*apart.devices[1], machine.recorder);
  apart.devices = {&gpu, &processor};
  Stores stores;
  const auto executable = compile(*graph, apart, stores, GivenPlaces{{0, 1, 0, 1}});
  run(*executable, numbers(64, 3), 4);
  ASSERT_EQ(processor.submitted().size(), 2U);
  EXPECT_EQ(processor.told(), processor.submitted());
  EXPECT_EQ(processor.told_before(), (std::vector<std::size_t>{1, 2}));
}

// A source whose memory cannot be mapped, so that weights are copied.
class CopiedWeights final : public WeightSource {
 public:
  explicit CopiedWeights(std::vector<float> values)
      : CopiedWeights(values, {static_cast<std::uint32_t>(values.size())}) {}
  CopiedWeights(std::vector<float> values, const Shape& shape) : values_(std::move(values)) {
    infos_.push_back({.name = "w", .dtype = DType::F32, .shape = shape, .bytes = values_.size() * sizeof(float)});
  }
  [[nodiscard]] std::span<const WeightInfo> weights() const override { return infos_; }
  [[nodiscard]] Status read(std::size_t, std::uint64_t offset, std::span<std::byte> out) override {
    std::ranges::copy(std::as_bytes(std::span(values_)).subspan(offset, out.size()), out.begin());
    ++reads;
    return {};
  }
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t) override { return {}; }
  void release(std::size_t, std::uint64_t, std::uint64_t bytes) override { released += bytes; }
  [[nodiscard]] Status health() const override { return reported; }

  std::uint64_t released = 0;
  std::atomic<int> reads = 0;  // several threads may read
  Status reported;

 private:
  std::vector<float> values_;
  std::vector<WeightInfo> infos_;
};

// Its programs are wrapped, too.
TEST(Executable, AProcessorWithFaultsIsToldAsWell) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {1, 64});
  const Tensor first = builder.linear(builder.silu(x), builder.weight("w", DType::F32, {64, 64}));
  builder.output(first);
  builder.output(builder.silu(first));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph);
  SeparateDevices machine(1, true);
  const std::unique_ptr<Device> processor = make_faulty(std::move(machine.owned[0]), nullptr);
  SeparateDevices apart(2);
  WorksByItself gpu(*apart.devices[1], machine.recorder);
  apart.devices = {&gpu, processor.get()};
  CopiedWeights source(numbers(std::size_t{64} * 64, 5), {64, 64});
  Stores stores(&source);
  const auto executable = compile(*graph, apart, stores, GivenPlaces{{0, 1, 0}});
  const std::vector<float> input = numbers(64, 3);
  const std::vector<float> once = run(*executable, input, 1);
  EXPECT_EQ(run(*executable, input, 1), once);
}

// Ops whose kernels need scratch memory: some a large block per thread, some one shared block.
Graph graph_with_scratch() {
  GraphBuilder builder;
  Tensor x = builder.input("x", DType::F32, {1, 512});
  for (int i = 0; i < 3; ++i) {
    x = builder.rms_norm(builder.softmax(x, Tensor{}));
    x = builder.dequantize(builder.quantize(x, {{Attr::to, DType::Q8_0}}));
    x = builder.linear(builder.copy(x, {{Attr::to, DType::F16}}), builder.weight("w", DType::F32, {512, 512}));
  }
  builder.output(x);
  auto graph = std::move(builder).finish();
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  return std::move(*graph);
}

TEST(Executable, TakesNoMoreScratchThanWasPlanned) {
  const Graph graph = graph_with_scratch();
  CopiedWeights source(std::vector<float>(std::size_t{512} * 512), {512, 512});
  for (const cpu::KernelSet kernels : {cpu::KernelSet::scalar, cpu::KernelSet::simd})
    for (const std::uint32_t count : {1U, 2U}) {
      SeparateDevices machine(count, true, kernels);
      Stores stores(&source);
      std::vector<std::uint32_t> placement;
      for (std::uint32_t node = 0; node < graph.nodes().size(); ++node) placement.push_back(node % count);
      const auto executable = compile(graph, machine, stores, GivenPlaces{placement});
      std::uint64_t planned = 0;
      for (const Plan::PlannedDevice& device : executable->plan().devices) planned += device.scratch_bytes;
      EXPECT_GT(executable->scratch_bytes(), 0U);
      EXPECT_GE(planned, executable->scratch_bytes()) << count << " devices";
    }
}

TEST(Executable, RecordsProgramsAndTransfers) {
  const Graph graph = branching_graph(2, 1);
  SeparateDevices machine(2);
  Stores stores;
  std::vector<std::uint32_t> placement;
  for (std::size_t node = 0; node < graph.nodes().size(); ++node)
    placement.push_back(static_cast<std::uint32_t>(node % 2));
  auto executable = compile(graph, machine, stores, GivenPlaces{placement});
  run(*executable, numbers(32, 2), 2);
  std::size_t programs = 0;
  std::uint64_t moved = 0;
  double predicted_us = 0;
  std::size_t transfers = 0;
  for (const trace::ExecutionEvent& event : machine.recorder.snapshot()) {
    programs += event.kind == trace::Kind::program ? 1U : 0U;
    transfers += event.kind == trace::Kind::transfer ? 1U : 0U;
    moved += event.bytes;
    if (event.kind != trace::Kind::run) predicted_us += static_cast<double>(event.predicted_us);
    EXPECT_FALSE(event.failed);
  }
  std::size_t planned_transfers = 0;
  std::uint64_t planned_bytes = 0;
  double planned_us = 0;
  for (const Step& step : executable->plan().steps) {
    planned_transfers += step.kind == Step::Kind::transfer ? 1U : 0U;
    planned_bytes += step.transfer.bytes;
    planned_us += step.end_us - step.start_us;
  }
  EXPECT_EQ(transfers, planned_transfers);
  EXPECT_EQ(moved, planned_bytes);
  EXPECT_NEAR(predicted_us, planned_us, 1e-5 * planned_us);
  EXPECT_EQ(programs, executable->plan().steps.size() - planned_transfers);
}

TEST(Executable, AFailedStepIsTheErrorOfTheRunAndTheNextRunIsRight) {
  const Graph graph = branching_graph(2, 3);
  SeparateDevices machine(2);
  Stores stores;
  std::vector<std::uint32_t> placement;
  for (std::size_t node = 0; node < graph.nodes().size(); ++node)
    placement.push_back(static_cast<std::uint32_t>(node % 2));
  auto executable = compile(graph, machine, stores, GivenPlaces{placement});
  const std::vector<float> x = numbers(32, 3);
  const std::vector<float> expected = run(*executable, x, 2);
  const Status late = executable->run({.parameters = {.tokens = 2}, .timeout = std::chrono::nanoseconds(-1)});
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::timed_out);
  EXPECT_EQ(run(*executable, x, 2), expected);
}

class CountsWrites final : public test::WrappedDevice {
 public:
  using test::WrappedDevice::WrappedDevice;
  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    ++writes_;
    return inner().write(to, from);
  }
  [[nodiscard]] std::uint32_t take_writes() { return std::exchange(writes_, 0); }

 private:
  std::uint32_t writes_ = 0;
};

TEST(Executable, WritesAnInputOnlyIfItIsNotThere) {
  const Graph graph = branching_graph(4, 2);
  SeparateDevices machine(1);
  CountsWrites device(*machine.devices[0]);
  machine.devices = {&device};
  Stores stores;
  const auto executable = compile(graph, machine, stores, Search{});
  const auto other = compile(graph, machine, stores, Search{});
  const std::vector<float> x = numbers(64, 3);
  const std::vector<float> expected = run(*executable, x, 4);
  EXPECT_EQ(device.take_writes(), 1U);
  EXPECT_EQ(run(*executable, x, 4), expected);
  EXPECT_EQ(device.take_writes(), 0U);
  EXPECT_NE(run(*executable, numbers(64, 4), 4), expected);
  EXPECT_EQ(device.take_writes(), 1U);
  EXPECT_EQ(run(*other, x, 4), expected);
  EXPECT_EQ(device.take_writes(), 1U);
  EXPECT_EQ(run(*other, x, 4), expected);
  EXPECT_EQ(device.take_writes(), 0U);
  EXPECT_EQ(run(*executable, numbers(64, 4), 4), run(*other, numbers(64, 4), 4)) << "it used the same arena";
  EXPECT_EQ(device.take_writes(), 2U);
}

TEST(Executable, ChecksWhatIsWrittenAndRead) {
  const Graph graph = branching_graph(2, 1);
  SeparateDevices machine(1);
  Stores stores;
  auto executable = compile(graph, machine, stores, Search{});
  std::vector<std::byte> bytes(129);
  EXPECT_EQ(executable->write_input(*graph.find("x"), bytes).error().code, Code::invalid);
  EXPECT_EQ(executable->write_input(graph.outputs()[0], std::span(bytes).first(4)).error().code, Code::invalid);
  EXPECT_EQ(executable->write_input(99999, {}).error().code, Code::invalid);
  EXPECT_EQ(executable->read_output(2, 0, {}).error().code, Code::invalid);
  EXPECT_EQ(executable->read_output(0, 0, bytes).error().code, Code::invalid);
  EXPECT_EQ(executable->read_output(0, ~std::uint64_t{0}, std::span(bytes).first(8)).error().code, Code::invalid);
  EXPECT_TRUE(executable->read_output(0, 128, {}).has_value());
}

Graph scaled_by_weight(DType dtype, const Shape& shape) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {2, 16});
  const Tensor y = builder.mul(x, builder.weight("w", dtype, shape));
  builder.output(y);
  builder.output(builder.add(y, y));
  auto graph = std::move(builder).finish();
  EXPECT_TRUE(graph.has_value());
  return std::move(*graph);
}

TEST(WeightStore, KeepsOneCopyPerPoolAndReleasesTheSource) {
  const Graph graph = scaled_by_weight(DType::F32, {16});
  CopiedWeights source(numbers(16, 4));
  SeparateDevices machine(2);
  Stores stores(&source);
  auto first = compile(graph, machine, stores, GivenPlaces{{0, 0}});
  auto again = compile(graph, machine, stores, GivenPlaces{{0, 1}});
  EXPECT_EQ(source.reads, 1);
  auto other_pool = compile(graph, machine, stores, GivenPlaces{{1, 0}});
  EXPECT_EQ(source.reads, 2);
  EXPECT_EQ(source.released, 128U);
  EXPECT_EQ(stores.weights.copied_bytes(), 128U);
  const std::vector<float> x = numbers(32, 5);
  EXPECT_EQ(run(*first, x, 0), run(*other_pool, x, 0));
  EXPECT_EQ(run(*first, x, 0), run(*again, x, 0));
}

TEST(WeightStore, MissingOrOtherTensorsAreErrorsThatNameThem) {
  CopiedWeights source(numbers(16, 4));
  SeparateDevices machine(1);
  for (const auto& [dtype, shape] : {std::pair{DType::F16, Shape{16}}, std::pair{DType::F32, Shape{2, 16}}}) {
    Stores stores(&source);
    const Graph graph = scaled_by_weight(dtype, shape);
    auto plan = make_plan({.graph = &graph, .devices = machine.devices});
    ASSERT_TRUE(plan.has_value());
    const auto executable = Executable::create(
        graph, *plan,
        {.devices = machine.devices, .weights = &stores.weights, .state = &stores.state, .arenas = &stores.arenas});
    ASSERT_FALSE(executable.has_value());
    EXPECT_NE(executable.error().message.find("tensor \"w\" is F32[16]"), std::string::npos);
  }
}

TEST(ArenaStore, CountsTheArenasThatSomebodyHolds) {
  SeparateDevices machine(2);
  ArenaStore arenas;
  const auto small = *arenas.acquire(100, *machine.devices[0]);
  EXPECT_EQ(*arenas.acquire(80, *machine.devices[0]), small);
  EXPECT_EQ(arenas.bytes(), 100U);
  auto large = *arenas.acquire(1000, *machine.devices[0]);
  EXPECT_EQ(arenas.bytes(), 1100U);
  const auto other = *arenas.acquire(10, *machine.devices[1]);
  EXPECT_EQ(arenas.bytes(), 1110U);
  large = *arenas.acquire(2000, *machine.devices[0]);
  EXPECT_EQ(arenas.bytes(), 2110U);
}

TEST(WeightStore, ASourceThatLostBytesFailsTheRun) {
  const Graph graph = scaled_by_weight(DType::F32, {16});
  CopiedWeights source(numbers(16, 4));
  SeparateDevices machine(1);
  Stores stores(&source);
  auto executable = compile(graph, machine, stores, Search{});
  source.reported = fail(Code::io, "the file shrank");
  const Status status = executable->run({});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::io);
}

}  // namespace
}  // namespace shunt
