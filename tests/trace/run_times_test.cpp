#include "trace/run_times.h"

#include <gtest/gtest.h>

#include <string_view>

namespace shunt::trace {
namespace {

class Recorded {
 public:
  void add(Kind kind, std::string_view what, std::string_view device, std::uint64_t begin_us, std::uint64_t end_us,
           std::uint64_t bytes = 0) {
    recording.events.push_back({.start_ns = 1000 * begin_us,
                                .duration_ns = 1000 * (end_us - begin_us),
                                .what = label(what),
                                .device = label(device),
                                .kind = kind,
                                .bytes = bytes});
  }
  Recording recording{.events = {}, .labels = {""}, .attachments = {}};

 private:
  Label label(std::string_view text) {
    recording.labels.emplace_back(text);
    return static_cast<Label>(recording.labels.size() - 1);
  }
};

TEST(RunTimes, OfWhatGoesOnAtOnceAddUp) {
  Recorded recorded;
  recorded.add(Kind::program, "early", "cpu:simd", 0, 90);
  recorded.add(Kind::program, "p", "cpu:simd", 100, 130);
  recorded.add(Kind::transfer, "copy w[0:64] from cpu:simd", "gpu:0", 105, 150, 4096);
  recorded.add(Kind::program, "q", "gpu:0", 160, 190);
  recorded.add(Kind::transfer, "copy x from gpu:0", "cpu:simd", 185, 195, 64);
  recorded.add(Kind::op, "linear w", "gpu:0", 160, 190);
  recorded.add(Kind::run, "plan 1", "", 100, 200);
  const RunTimes times(recorded.recording, {"cpu:simd"}, {"w"});
  EXPECT_EQ(times.runs(), 1U);
  EXPECT_EQ(times.us(), 100);
  EXPECT_EQ(times.weight_bytes(), 4096);
  using enum Activity;
  EXPECT_EQ(times.us_of(processor), 30);
  EXPECT_EQ(times.us_of(weights), 45);
  EXPECT_EQ(times.us_of(weights, {processor}), 20);
  EXPECT_EQ(times.us_of(device), 30);
  EXPECT_EQ(times.us_of(values), 10);
  EXPECT_EQ(times.us_of(values, {device}), 5);
  EXPECT_EQ(times.idle_us(), 15);
  EXPECT_EQ(times.us_of(processor) + times.us_of(weights, {processor}) + times.us_of(device, {processor, weights}) +
                times.us_of(values, {processor, weights, device}) + times.idle_us(),
            times.us());
  recorded.add(Kind::run, "plan 1", "", 300, 310);
  EXPECT_EQ(RunTimes(recorded.recording, {"cpu:simd"}, {"w"}).us(), 55) << "the mean of two runs";
}

TEST(RunTimes, OfNoRunAreZero) {
  const RunTimes none(Recording{}, {}, {});
  EXPECT_EQ(none.runs(), 0U);
  EXPECT_EQ(none.us(), 0);
  EXPECT_EQ(none.us_of(Activity::processor), 0);
}

}  // namespace
}  // namespace shunt::trace
