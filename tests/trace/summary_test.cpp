#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trace/sample_recording.h"
#include "trace/span.h"

namespace shunt::trace {
namespace {

using test::SampleRecorder;

TEST(Summary, OfNothingIsZeroes) {
  Recorder recorder(4);
  const ExecutionSummary summary = summarize(recording_of(recorder));
  EXPECT_EQ(summary.span_us, 0);
  EXPECT_EQ(summary.runs.events, 0U);
  EXPECT_TRUE(summary.devices.empty() && summary.ops.empty() && summary.links.empty());
  EXPECT_EQ(to_text(summary), "0 events over 0.0 us\n");
  EXPECT_EQ(nlohmann::json::parse(to_json(summary), nullptr, false)["devices"], nlohmann::json::array());
}

TEST(Summary, CountsByDeviceByOpAndByLink) {
  SampleRecorder sample;
  for (std::uint64_t device = 0; device < 5; ++device) {
    const std::string id = "dev:" + std::to_string(device);
    sample.add({.what = "step", .device = id, .start_us = 10 * device, .duration_us = 1 + device, .predicted_us = 2})
        .add({.kind = Kind::op, .what = "add n1", .device = id, .start_us = 10 * device, .duration_us = 1})
        .add({.kind = Kind::op, .what = "mul n2", .device = id, .start_us = 10 * device, .duration_us = device});
  }
  sample.add(
      {.kind = Kind::transfer, .what = "copy", .device = "dev:1", .from = "dev:0", .start_us = 50, .duration_us = 7});
  const ExecutionSummary summary = summarize(recording_of(sample.recorder()));
  ASSERT_EQ(summary.devices.size(), 5U);
  EXPECT_EQ(summary.devices[0].name, "dev:4");
  EXPECT_EQ(summary.devices[0].actual_us, 5);
  EXPECT_EQ(summary.devices[0].predicted_share(), 0.4);
  ASSERT_EQ(summary.ops.size(), 2U);
  EXPECT_EQ(summary.ops[0].name, "mul");
  EXPECT_EQ(summary.ops[0].actual_us, 10);
  EXPECT_EQ(summary.ops[0].events, 5U);
  EXPECT_EQ(summary.ops_by_device.size(), 10U);
  ASSERT_EQ(summary.links.size(), 1U);
  EXPECT_EQ(summary.links[0].name, "dev:0 -> dev:1");
  EXPECT_EQ(summary.span_us, 57);
  EXPECT_NE(to_text(summary).find("mul on dev:3"), std::string::npos) << to_text(summary);
}

// Times of sampled ops represent all runs of their plan.
TEST(Summary, TakesSampledOpsForAllRunsOfTheirPlan) {
  SampleRecorder sample;
  Recorder& recorder = sample.recorder();
  const std::uint64_t timed_ns[] = {4'000, 9'000, 1'000, 0, 0};  // one run of plan 1, the first two of plan 2
  for (std::uint32_t step = 0; step < 5; ++step) {
    const std::uint32_t plan = step == 0 ? 1 : 2;
    recorder.record({.duration_ns = 10'000, .kind = Kind::run, .step = step, .plan = plan});
    if (timed_ns[step] == 0) continue;
    recorder.record({.duration_ns = timed_ns[step],
                     .what = recorder.intern("mul n"),
                     .kind = Kind::op,
                     .step = step,
                     .plan = plan,
                     .predicted_us = 8});
  }
  const ExecutionSummary summary = summarize(recording_of(recorder));
  EXPECT_EQ(summary.runs_with_ops, 3U);
  ASSERT_EQ(summary.ops.size(), 1U);
  EXPECT_EQ(summary.ops[0].events, 3U);
  EXPECT_EQ(summary.ops[0].actual_us, 4 + 9 + 3 * 1);
  EXPECT_EQ(summary.ops[0].predicted_us, 5 * 8);
  EXPECT_NE(to_text(summary).find("ops (3 of 5 runs)"), std::string::npos) << to_text(summary);
}

TEST(Summary, TellsWhatWasBusyAtOnce) {
  SampleRecorder sample;
  sample.add({.what = "a", .device = "cpu", .start_us = 0, .duration_us = 40})
      .add({.what = "b", .device = "gpu", .start_us = 60, .duration_us = 10})
      .add({.what = "c", .device = "gpu", .start_us = 35, .duration_us = 10})
      .add({.what = "d", .device = "gpu", .start_us = 10, .duration_us = 5})
      .add({.what = "e", .device = "gpu", .start_us = 12, .duration_us = 8})
      .add({.kind = Kind::transfer, .what = "f", .device = "gpu", .from = "cpu", .start_us = 45, .duration_us = 20})
      .add({.kind = Kind::run, .what = "all", .start_us = 0, .duration_us = 70});
  const ExecutionSummary summary = summarize(recording_of(sample.recorder()));
  ASSERT_EQ(summary.overlaps.size(), 2U);
  EXPECT_EQ(summary.overlaps[0].first, "cpu");
  EXPECT_EQ(summary.overlaps[0].second, "gpu");
  EXPECT_EQ(summary.overlaps[0].us, 15);
  EXPECT_EQ(summary.overlaps[0].of_shorter, 0.5);
  EXPECT_EQ(summary.overlaps[1].second, "copies");
  EXPECT_EQ(summary.overlaps[1].us, 5);
  EXPECT_EQ(summary.overlaps[1].of_shorter, 0.25);
  EXPECT_NE(to_text(summary).find("cpu and gpu"), std::string::npos) << to_text(summary);
}

// A trace is a file: it may name as many devices as it has events, with names of any length.
TEST(Summary, ComparesAndPadsWithinBounds) {
  constexpr std::size_t kDevices = 200;
  SampleRecorder sample(1024);
  std::string first = std::string(50'000, 'a');
  for (std::size_t device = 0; device < kDevices; ++device)
    sample.add({.what = "a", .device = first + std::to_string(device), .duration_us = 10 + device});
  const ExecutionSummary summary = summarize(recording_of(sample.recorder()));
  EXPECT_EQ(summary.devices.size(), kDevices);
  EXPECT_EQ(summary.overlaps.size(), 32U * 31U / 2);
  // The devices that were busy longest are kept.
  EXPECT_EQ(summary.overlaps.front().first, first + std::to_string(kDevices - 1));
  EXPECT_LT(to_text(summary).size(), 1'000U * 200U);
}

TEST(Summary, CountsAudits) {
  SampleRecorder sample;
  sample.add({.kind = Kind::audit, .what = "linear a", .device = "gpu", .duration_us = 4});
  Recorder& recorder = sample.recorder();
  recorder.record({.device = recorder.intern("gpu"), .kind = Kind::audit, .failed = true});
  const ExecutionSummary summary = summarize(recording_of(recorder));
  ASSERT_EQ(summary.audits.size(), 1U);
  EXPECT_EQ(summary.audits[0].name, "gpu");
  EXPECT_EQ(summary.audits[0].events, 2U);
  EXPECT_EQ(summary.audits[0].failed, 1U);
  EXPECT_TRUE(summary.devices.empty() && summary.ops.empty());
  EXPECT_NE(to_text(summary).find("audits of"), std::string::npos) << to_text(summary);
  EXPECT_EQ(nlohmann::json::parse(to_json(summary), nullptr, false)["audits"][0]["failed"], 1);
}

TEST(Summary, SumsStagesOfLoading) {
  SampleRecorder sample;
  {
    const Span reading(&sample.recorder(), Kind::load, "reading", "gpu", 70);
    const Span pinning(&sample.recorder(), Kind::load, "pinning", "gpu");
  }
  {
    const Span reading(&sample.recorder(), Kind::load, "reading", "gpu", 30);
  }
  const Span nowhere(nullptr, Kind::load, "reading", "gpu", 30);
  const ExecutionSummary summary = summarize(recording_of(sample.recorder()));
  ASSERT_EQ(summary.loads.size(), 2U);
  const auto reading = std::ranges::find(summary.loads, "reading for gpu", &Tally::name);
  ASSERT_NE(reading, summary.loads.end());
  EXPECT_EQ(reading->events, 2U);
  EXPECT_EQ(reading->bytes, 100U);
  EXPECT_TRUE(summary.devices.empty() && summary.links.empty());
  EXPECT_NE(to_text(summary).find("loading weights"), std::string::npos) << to_text(summary);
  EXPECT_EQ(nlohmann::json::parse(to_json(summary), nullptr, false)["loads"].size(), 2U);
}

// Predictions are compared only with the time of events that had one.
TEST(Summary, ComparesOnlyWhatWasPredictedAndEnded) {
  SampleRecorder sample;
  sample.add({.what = "a", .device = "cpu", .duration_us = 10, .predicted_us = 5})
      .add({.what = "b", .device = "cpu", .start_us = 10, .duration_us = 100});
  Recorder& recorder = sample.recorder();
  recorder.record({.duration_ns = 1'000'000,
                   .device = recorder.intern("cpu"),
                   .failed = true,
                   .code = Code::timed_out,
                   .predicted_us = 7});
  const Tally cpu = summarize(recording_of(recorder)).devices.at(0);
  EXPECT_EQ(cpu.events, 3U);
  EXPECT_EQ(cpu.failed, 1U);
  EXPECT_EQ(cpu.actual_us, 1110);
  EXPECT_EQ(cpu.predicted_us, 5);
  EXPECT_EQ(cpu.compared_us, 10);
}

}  // namespace
}  // namespace shunt::trace
