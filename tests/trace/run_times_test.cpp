#include "trace/run_times.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string_view>

#include "trace/recording.h"

namespace shunt::trace {
namespace {

class Recorded {
 public:
  struct Times {
    std::uint64_t begin_us;
    std::uint64_t end_us;
  };
  ExecutionEvent& add(Kind kind, std::string_view what, std::string_view device, Times times, std::uint64_t bytes = 0) {
    recording.events.push_back({.start_ns = 1000 * times.begin_us,
                                .duration_ns = 1000 * (times.end_us - times.begin_us),
                                .what = label(what),
                                .device = label(device),
                                .kind = kind,
                                .bytes = bytes});
    return recording.events.back();
  }
  ExecutionEvent& add_run(Times times, std::uint32_t plan = 1) {
    ExecutionEvent& run = add(Kind::run, "a plan", "", times);
    run.plan = plan;
    return run;
  }
  void add_weight(Times times, std::uint64_t bytes) {
    const Label reason = label(kWeightOfStep);
    add(Kind::transfer, "copy w from cpu:simd", "gpu:0", times, bytes).reason = reason;
  }
  [[nodiscard]] RunTimes times() const {
    return run_times_of(recording, {"cpu:simd"}, 1, [](const ExecutionEvent&) { return 0U; }).front();
  }
  Recording recording{.events = {}, .labels = {""}, .attachments = {}};

 private:
  Label label(std::string_view text) {
    recording.labels.emplace_back(text);
    return static_cast<Label>(recording.labels.size() - 1);
  }
};

using enum Activity;

// Computes and copies from 100 to 200 us.
Recorded mixed_run() {
  Recorded recorded;
  recorded.add(Kind::program, "early", "cpu:simd", {0, 90});
  recorded.add(Kind::program, "p", "cpu:simd", {100, 130});
  recorded.add_weight({105, 150}, 4096);
  recorded.add(Kind::program, "q", "gpu:0", {160, 190});
  recorded.add(Kind::transfer, "copy x from gpu:0", "cpu:simd", {185, 195}, 64);
  recorded.add(Kind::op, "linear w", "gpu:0", {160, 190});
  return recorded;
}

TEST(RunTimes, OfWhatGoesOnAtOnceAddUp) {
  Recorded recorded = mixed_run();
  recorded.add_run({100, 200});
  const RunTimes times = recorded.times();
  EXPECT_EQ(times.runs(), 1U);
  EXPECT_EQ(times.us(), 100);
  EXPECT_EQ(times.weight_bytes(), 4096);
  EXPECT_EQ(times.us_of(processor), 30);
  EXPECT_EQ(times.us_of(weights), 45);
  EXPECT_EQ(times.us_of(device), 30);
  EXPECT_EQ(times.us_of(values), 10);
  EXPECT_EQ(times.us_in_turn({processor, weights, device, values}), (std::array<double, 4>{30, 20, 30, 5}));
  EXPECT_EQ(times.us_in_turn({values, weights, processor, device}), (std::array<double, 4>{10, 45, 5, 25}));
  EXPECT_EQ(times.idle_us(), 15);
  recorded.add_run({300, 310});
  EXPECT_EQ(recorded.times().us(), 55) << "the mean of two runs";
  EXPECT_EQ(recorded.times().weight_bytes(), 2048);
}

TEST(RunTimes, CountWhatGoesOnAtTheEdgesOfARun) {
  Recorded recorded;
  recorded.add_weight({0, 10}, 1);  // ends when the run begins
  recorded.add_weight({5, 15}, 2);
  recorded.add_weight({10, 12}, 4);
  recorded.add_weight({19, 25}, 8);
  recorded.add_weight({20, 30}, 16);  // begins when the run ends
  recorded.add(Kind::program, "p", "cpu:simd", {0, 40});
  recorded.add_run({10, 20});
  EXPECT_EQ(recorded.times().weight_bytes(), 14);
  EXPECT_EQ(recorded.times().us_of(weights), 6);
  EXPECT_EQ(recorded.times().us_of(processor), 10);
  EXPECT_EQ(recorded.times().idle_us(), 0);
}

TEST(RunTimes, OfGroupsAreApartAlsoWhereRunsOverlap) {
  Recorded recorded = mixed_run();
  recorded.add_run({100, 200}, 1).predicted_us = 80;
  recorded.add_run({120, 165}, 2).predicted_us = 45;
  recorded.add_run({120, 165}, 3);
  recorded.add_run({120, 165}, 2).failed = true;
  const auto group_of = [](const ExecutionEvent& run) {
    return run.plan == 3 ? std::nullopt : std::optional<std::size_t>(run.plan - 1);
  };
  const auto times = run_times_of(recorded.recording, {"cpu:simd"}, 2, group_of);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].us_in_turn({processor, weights, device, values}), (std::array<double, 4>{30, 20, 30, 5}));
  EXPECT_EQ(times[1].runs(), 1U);
  EXPECT_EQ(times[1].us_in_turn({processor, weights, device, values}), (std::array<double, 4>{10, 20, 5, 0}));
  EXPECT_EQ(times[1].idle_us(), 10);
  EXPECT_EQ(times[0].predicted_us(), 80);
  EXPECT_EQ(times[1].predicted_us(), 45);
}

TEST(RunTimes, LeaveOutRunsThatLackEvents) {
  Recorded recorded = mixed_run();
  recorded.add_run({80, 95});
  recorded.add_run({100, 200});
  EXPECT_EQ(recorded.times().runs(), 2U);
  recorded.recording.overwritten = 1;
  EXPECT_EQ(recorded.times().runs(), 1U) << "the first began before the first event that is there ended";
  EXPECT_EQ(recorded.times().us(), 100);
}

TEST(RunTimes, OfNoRunAreZero) {
  Recorded recorded;
  recorded.recording.overwritten = 1;
  const RunTimes none = recorded.times();
  EXPECT_EQ(none.runs(), 0U);
  EXPECT_EQ(none.us(), 0);
  EXPECT_EQ(none.us_of(processor), 0);
}

TEST(RunTimes, OfJoinedRecordingsAreOfBoth) {
  Recorded first = mixed_run();
  first.add_run({100, 200});
  first.recording.recorded = first.recording.events.size();
  Recorded later{first};
  later.recording.events.clear();
  later.add(Kind::program, "p", "cpu:simd", {300, 310});
  later.add_run({300, 320});
  later.add(Kind::program, "p", "cpu:simd", {320, 330});
  later.add_run({320, 340});
  later.recording.recorded = 4;
  const auto both = joined(first.recording, later.recording);
  EXPECT_EQ(both.recorded, 11U);
  EXPECT_EQ(both.labels, later.recording.labels);
  const auto times_of = [](const Recording& recording) {
    return run_times_of(recording, {"cpu:simd"}, 1, [](const ExecutionEvent&) { return 0U; }).front();
  };
  EXPECT_EQ(times_of(both).runs(), 3U);
  EXPECT_DOUBLE_EQ(times_of(both).us(), 140.0 / 3);
  later.recording.overwritten = 1;
  const auto partial = joined(first.recording, later.recording);
  EXPECT_EQ(times_of(partial).runs(), 2U) << "one run of the later one lacks events";
  EXPECT_EQ(partial.recorded, partial.events.size());
}

}  // namespace
}  // namespace shunt::trace
