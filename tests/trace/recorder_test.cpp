#include "trace/recorder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "trace/chrome.h"

namespace shunt::trace {
namespace {

Event numbered(std::uint64_t number) {
  return {.start_ns = number,
          .duration_ns = number + 1,
          .what = static_cast<Label>(number),
          .device = 7,
          .reason = 8,
          .kind = Kind::transfer,
          .failed = true,
          .code = Code::device_lost,
          .step = 9,
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
  EXPECT_EQ(events[0].reason, 8U);
  EXPECT_EQ(events[0].kind, Kind::transfer);
  EXPECT_TRUE(events[0].failed);
  EXPECT_EQ(events[0].code, Code::device_lost);
  EXPECT_EQ(events[0].step, 9U);
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
    for (const Event& event : recorder.snapshot()) {
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

TEST(ChromeTrace, IsJsonWithATrackPerDevice) {
  Recorder recorder(8);
  recorder.set_enabled(true);
  const Label device = recorder.intern("cpu:\"odd\"\n");
  recorder.record({.start_ns = 3000, .duration_ns = 2000, .what = recorder.intern("matmul"), .device = device});
  recorder.record({.start_ns = 9000, .duration_ns = 1000, .what = recorder.intern("add"), .device = device});
  const auto json = nlohmann::json::parse(to_chrome_json(recorder), nullptr, false);
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["traceEvents"].size(), 3U);
  EXPECT_EQ(json["traceEvents"][0]["args"]["name"], "cpu:\"odd\"\n");
  EXPECT_EQ(json["traceEvents"][1]["name"], "matmul");
  EXPECT_EQ(json["traceEvents"][1]["dur"], 2.0);
  EXPECT_EQ(json["traceEvents"][2]["ts"], 6.0);
  EXPECT_EQ(json["otherData"]["events_overwritten"], 0);
}

TEST(ChromeTrace, SaysHowMuchOfTheBeginningIsMissing) {
  Recorder recorder(4);
  recorder.set_enabled(true);
  for (std::uint64_t i = 0; i < 10; ++i) recorder.record(numbered(i));
  const auto json = nlohmann::json::parse(to_chrome_json(recorder), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["otherData"]["events_recorded"], 10);
  EXPECT_EQ(json["otherData"]["events_overwritten"], 6);
}

TEST(ChromeTrace, AnUnwritablePathIsAnError) {
  for (const auto& [path, code] : {std::pair{"/nonexistent/trace.json", Code::io}, {"/dev/null", Code::invalid}})
    for (const Status& status : {write_chrome_trace(Recorder(1), path), check_trace_path(path)}) {
      ASSERT_FALSE(status.has_value()) << path;
      EXPECT_EQ(status.error().code, code);
      EXPECT_NE(status.error().message.find(path), std::string::npos) << status.error().message;
    }
}

}  // namespace
}  // namespace shunt::trace
