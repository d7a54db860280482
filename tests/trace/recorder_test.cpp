#include "trace/recorder.h"

#include <gtest/gtest.h>

#include <thread>

namespace shunt::trace {
namespace {

ExecutionEvent numbered(std::uint64_t number) {
  return {.start_ns = number,
          .duration_ns = number + 1,
          .what = static_cast<Label>(number),
          .device = 7,
          .from = 6,
          .reason = 8,
          .kind = Kind::transfer,
          .failed = true,
          .code = Code::device_lost,
          .step = 9,
          .plan = 10,
          .predicted_us = 1.5F,
          .bytes = number * 3};
}

TEST(Recorder, GivesBackWhatWasRecorded) {
  Recorder recorder(8);
  recorder.set_enabled(true);
  recorder.record(numbered(5));
  const auto events = recorder.snapshot();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].start_ns, 5U);
  EXPECT_EQ(events[0].duration_ns, 6U);
  EXPECT_EQ(events[0].what, 5U);
  EXPECT_EQ(events[0].device, 7U);
  EXPECT_EQ(events[0].from, 6U);
  EXPECT_EQ(events[0].reason, 8U);
  EXPECT_EQ(events[0].kind, Kind::transfer);
  EXPECT_TRUE(events[0].failed);
  EXPECT_EQ(events[0].code, Code::device_lost);
  EXPECT_EQ(events[0].step, 9U);
  EXPECT_EQ(events[0].plan, 10U);
  EXPECT_EQ(events[0].predicted_us, 1.5F);
  EXPECT_EQ(events[0].bytes, 15U);
}

TEST(Recorder, KeepsTheNewestEventsWhenItIsFull) {
  Recorder recorder(4);
  recorder.set_enabled(true);
  for (std::uint64_t i = 0; i < 10; ++i) recorder.record(numbered(i));
  const auto events = recorder.snapshot();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events.front().start_ns, 6U);
  EXPECT_EQ(events.back().start_ns, 9U);
  EXPECT_EQ(recorder.recorded(), 10U);
  EXPECT_EQ(recorder.overwritten(), 6U);
  recorder.clear();
  for (std::uint64_t i = 0; i < 4; ++i) recorder.record(numbered(i));
  EXPECT_EQ(recorder.overwritten(), 0U);
}

TEST(Recorder, RecordsNothingWhileOffOrWithoutRoom) {
  Recorder off(4);
  off.record(numbered(1));
  EXPECT_TRUE(off.snapshot().empty());
  Recorder roomless(0);
  roomless.set_enabled(true);
  roomless.record(numbered(1));
  EXPECT_TRUE(roomless.snapshot().empty());
}

TEST(Recorder, ClearForgetsWhatWasBefore) {
  Recorder recorder(8);
  recorder.set_enabled(true);
  recorder.record(numbered(1));
  recorder.clear();
  EXPECT_TRUE(recorder.snapshot().empty());
  EXPECT_EQ(recorder.recorded(), 0U);
  recorder.record(numbered(2));
  ASSERT_EQ(recorder.snapshot().size(), 1U);
  EXPECT_EQ(recorder.snapshot()[0].start_ns, 2U);
}

// A torn event would break one of these relations.
TEST(Recorder, SnapshotsAreWholeWhileManyThreadsWrite) {
  Recorder recorder(64);
  recorder.set_enabled(true);
  std::vector<std::thread> writers;
  for (std::uint64_t writer = 0; writer < 3; ++writer)
    writers.emplace_back([&recorder, writer] {
      for (std::uint64_t i = 0; i < 5000; ++i) recorder.record(numbered(writer * 100000 + i));
    });
  for (int i = 0; i < 200; ++i)
    for (const ExecutionEvent& event : recorder.snapshot()) {
      ASSERT_EQ(event.duration_ns, event.start_ns + 1);
      ASSERT_EQ(event.bytes, event.start_ns * 3);
    }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(recorder.recorded(), 15000U);
}

TEST(Recorder, InternsEachTextOnce) {
  Recorder recorder(4);
  const Label first = recorder.intern("cpu:simd");
  EXPECT_EQ(recorder.intern("cpu:simd"), first);
  EXPECT_NE(recorder.intern("cpu:scalar"), first);
  EXPECT_EQ(recorder.text_of(first), "cpu:simd");
  EXPECT_EQ(recorder.text_of(12345), "");
}

TEST(Recorder, NumbersWhatIsAttachedPerKey) {
  Recorder recorder(4);
  EXPECT_EQ(recorder.attach(kPlans, "{}"), 0U) << "it is off";
  recorder.set_enabled(true);
  EXPECT_EQ(recorder.attach(kPlans, "{}"), 1U);
  EXPECT_EQ(recorder.attach("other", "[]"), 1U);
  EXPECT_EQ(recorder.attach(kPlans, "[1]"), 2U);
  recorder.clear();
  EXPECT_EQ(recorder.attachments(), (Attachments{{"other", {"[]"}}, {"plans", {"{}", "[1]"}}}));
}

}  // namespace
}  // namespace shunt::trace
