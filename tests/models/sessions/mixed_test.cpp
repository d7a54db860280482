// One model on several devices: layers alternate, with copies between them.
#include <fmt/format.h>

#include "devices/cpu/device.h"
#include "devices/sim/device.h"
#include "models/short_run.h"
#include "models/step_planner.h"
#include "run/opened_devices.h"
#include "sanitized.h"
#include "trace/chrome.h"
#include "trace/recorder.h"
#include "trace/recording.h"

namespace shunt::models {
namespace {

// Under sanitizers one of the two: their weights differ, and neither the threads nor the memory that they use.
std::vector<const char*> files() {
  if (test::kSanitized) return {kQuantizedModel};
  return {kTrainedModel, kQuantizedModel};
}

constexpr SessionOptions kInTurn{.context = 64, .max_sequences = 2, .strategy = Strategy::layers};

// cpu:simd and cpu:scalar with separate memory pools.
std::unique_ptr<Runtime> separate_cpus() {
  auto recorder = std::make_unique<trace::Recorder>();
  recorder->set_enabled(true);
  const auto engine = std::make_shared<cpu::Engine>(2, std::span<const std::uint32_t>());
  BackendReport report{.api = "cpu"};
  for (const auto& [kernels, pool] : {std::pair(cpu::KernelSet::simd, "a"), std::pair(cpu::KernelSet::scalar, "b")})
    report.devices.push_back(
        cpu::make_cpu_device({.kernels = kernels, .engine = engine, .recorder = recorder.get(), .memory_pool = pool}));
  Registry registry;
  registry.backends.push_back(std::move(report));
  return runtime_over(std::move(registry), std::move(recorder));
}

std::size_t copies_in(const Plan& plan) {
  return static_cast<std::size_t>(std::ranges::count(plan.steps, Step::Kind::transfer, &Step::kind));
}

TEST(Mixed, LayersInTurnGiveTheTextOfOneDevice) {
  for (const char* path : files()) {
    SCOPED_TRACE(path);
    Loaded loaded(path, separate_cpus(), kInTurn);
    expect_the_scalar_devices_run(*loaded.session, path);
  }
}

TEST(Mixed, EachLayerWithItsStateAndWeightsIsOnItsDevice) {
  Loaded loaded(kTrainedModel, separate_cpus(), kInTurn);
  const std::uint32_t layers = loaded.model->config().layers;
  ASSERT_GT(layers, 2U);
  for (const std::uint32_t tokens : {16U, 1U}) {
    const PlannedGraph step = Loaded::take(StepPlanner(*loaded.model, *loaded.runtime, kInTurn, 64).plan(tokens, 1));
    ASSERT_TRUE(check(step.plan, step.graph).has_value());
    for (const Residence& residence : step.plan.residences) {
      const std::string& name = step.graph.tensor(residence.tensor).name;
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        const bool weight = residence.kind == StorageKind::weight;
        if (!name.starts_with(fmt::format("{}.{}.", weight ? "blk" : "cache", layer))) continue;
        EXPECT_TRUE(weight || residence.kind == StorageKind::state) << name;
        EXPECT_EQ(residence.device, layer % 2) << name;
      }
    }
    for (const Decision& decision : step.plan.decisions) EXPECT_EQ(decision.reason, Reason::placed_by_hand);
    // Only the sum after each layer.
    EXPECT_EQ(copies_in(step.plan), layers - 1);
  }
}

TEST(Mixed, WeightsAreCopiedOnlyToTheDevicesThatUseThem) {
  Loaded loaded(kTrainedModel, separate_cpus(), kInTurn);
  const PlannedGraph step = Loaded::take(StepPlanner(*loaded.model, *loaded.runtime, kInTurn, 64).plan(1, 1));
  std::uint64_t planned = 0;
  for (const MemoryUse& use : step.plan.memory) {
    EXPECT_LT(use.weight_bytes, loaded.model->weight_bytes());
    planned += use.weight_bytes;
  }
  // The embedding is also the output matrix, and stored once per device.
  EXPECT_TRUE(loaded.model->config().tied_output);
  std::uint64_t embedding = 0;
  for (const WeightInfo& info : loaded.model->weights().weights())
    if (info.name == "token_embd.weight") embedding = info.bytes;
  const bool ends_elsewhere = loaded.model->config().layers % 2 == 0;
  EXPECT_EQ(planned, loaded.model->weight_bytes() + (ends_elsewhere ? embedding : 0));
}

TEST(Mixed, CopiesAreInThePlanInItsWordsAndInTheTrace) {
  Loaded loaded(kTrainedModel, separate_cpus(), kInTurn);
  const std::vector<Token> prompt = {1, 300, 301};
  ASSERT_TRUE(loaded.session->prefill(0, prompt).has_value());
  const Plan& plan = *Loaded::take(loaded.session->plan_for(3, 1));
  const PlannedGraph same = Loaded::take(StepPlanner(*loaded.model, *loaded.runtime, kInTurn, 64).plan(3, 1));
  const std::string words = to_text(same.plan, same.graph, true);
  const std::string trace = trace::to_chrome_json(recording_of(opened(*loaded.runtime).recorder()));
  std::size_t found = 0;
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::transfer) continue;
    ++found;
    const std::string& tensor = same.graph.tensor(step.transfer.tensor).name;
    const std::string& from = plan.devices[step.transfer.from].id;
    EXPECT_NE(words.find(fmt::format("copy {} (", tensor)), std::string::npos) << words;
    EXPECT_NE(words.find(fmt::format("from {} to {}", from, plan.devices[step.transfer.to].id)), std::string::npos);
    EXPECT_NE(trace.find(fmt::format("copy {} from {}", tensor, from)), std::string::npos) << trace;
  }
  EXPECT_GT(found, 0U);
  std::uint64_t copied = 0;
  for (const trace::ExecutionEvent& event : opened(*loaded.runtime).recorder().snapshot())
    if (event.kind == trace::Kind::transfer) ++copied;
  EXPECT_EQ(copied, found);
  EXPECT_NE(words.find("placed by hand"), std::string::npos);
}

// Two equally fast, slow devices: each reads half of each matrix.
TEST(Mixed, DevicesThatShareEachWeightGiveTheTextOfOneDevice) {
  for (const char* path : files()) {
    SCOPED_TRACE(path);
    const auto clock = std::make_shared<sim::VirtualClock>();
    auto recorder = std::make_unique<trace::Recorder>();
    BackendReport report{.api = "sim"};
    for (const char* id : {"sim:0", "sim:1"})
      report.devices.push_back(sim::make_sim_device(
          {.id = id, .launch_us = 1, .rate = {.flops_per_s = 1e12, .bytes_per_s = 1e8}, .link = {.latency_us = 1}},
          clock, recorder.get()));
    Registry registry;
    registry.backends.push_back(std::move(report));
    const SessionOptions options{.context = 64, .max_sequences = 2};
    Loaded loaded(
        path, runtime_over(std::move(registry), std::move(recorder), {.calibrated = false, .strict = true, .audit = 1}),
        options);
    expect_the_scalar_devices_run(*loaded.session, path);
    const PlannedGraph one =
        Loaded::take(StepPlanner(*loaded.model, DeviceSet(*loaded.runtime), options, 64).plan(1, 1));
    ASSERT_TRUE(check(one.plan, one.graph).has_value());
    EXPECT_TRUE(one.graph.find("blk.0.ffn_up.weight[0:384]")) << to_text(one.plan, one.graph, false);
    std::uint64_t copied = 0;
    for (const MemoryUse& use : one.plan.memory) {
      EXPECT_LT(use.weight_bytes, loaded.model->weight_bytes()) << use.pool;
      copied += use.weight_bytes;
    }
    EXPECT_EQ(loaded.session->memory().copied_weights, copied) << "steps of all sizes use the same parts";
  }
}

// Only the weights of sim:0 and sim:1 are copied: these devices cannot address the file.
TEST(Mixed, TheCpuAndTwoSimulatedDevicesGiveTheTextOfOneDevice) {
  for (const char* path : files()) {
    SCOPED_TRACE(path);
    Loaded loaded(path, "cpu:simd,sim:0,sim:1", kInTurn);
    expect_the_scalar_devices_run(*loaded.session, path);
    const Plan& plan = *Loaded::take(loaded.session->plan_for(1, 1));
    std::uint64_t on_simulated_devices = 0;
    for (const Residence& residence : plan.residences)
      if (residence.kind == StorageKind::weight && residence.device != 0) on_simulated_devices += residence.bytes;
    EXPECT_GT(on_simulated_devices, 0U);
    EXPECT_EQ(loaded.session->memory().copied_weights, on_simulated_devices);
  }
}

TEST(Mixed, ALostDeviceIsTheErrorOfAStrictStepAndTheSequencesStay) {
  const auto engine = std::make_shared<cpu::Engine>(2, std::span<const std::uint32_t>());
  BackendReport cpu{.api = "cpu"};
  cpu.devices.push_back(cpu::make_cpu_device({.engine = engine}));
  BackendReport simulated{.api = "sim"};
  simulated.devices.push_back(
      sim::make_sim_device({.faults = {.lost_at_op = 50}}, std::make_shared<sim::VirtualClock>()));
  Registry registry;
  registry.backends.push_back(std::move(cpu));
  registry.backends.push_back(std::move(simulated));
  Loaded loaded(
      kTrainedModel,
      runtime_over(std::move(registry), std::make_unique<trace::Recorder>(0), {.calibrated = false, .strict = true}),
      kInTurn);
  const std::vector<Token> prompt = {1, 300, 301};
  ASSERT_TRUE(loaded.session->prefill(0, prompt).has_value());
  const Status lost = loaded.session->prefill(0, prompt);
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::device_lost);
  EXPECT_EQ(loaded.session->tokens(0).size(), prompt.size());
  EXPECT_EQ(loaded.session->prefill(1, prompt).error().code, Code::device_lost);
}

TEST(Mixed, OneDeviceInTurnIsThatDeviceAlone) {
  Loaded loaded(kTrainedModel, "cpu:simd", {.context = 64, .strategy = Strategy::layers});
  const Plan& plan = *Loaded::take(loaded.session->plan_for(4, 1));
  EXPECT_EQ(plan.steps.size(), 1U);
}

}  // namespace
}  // namespace shunt::models
