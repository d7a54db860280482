#include "trace/chrome.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "trace/sample_recording.h"

namespace shunt::trace {
namespace {

using Json = nlohmann::json;
using test::SampleRecorder;

Json json_of(Recorder& recorder) { return Json::parse(to_chrome_json(recording_of(recorder)), nullptr, false); }

std::vector<std::string> tracks_in(const Json& json) {
  std::vector<std::string> names;
  for (const Json& event : json["traceEvents"])
    if (event["name"] == "thread_name") names.push_back(event["args"]["name"]);
  return names;
}

TEST(ChromeTrace, HasATrackPerQueueAndPerLink) {
  SampleRecorder sample;
  sample
      .add({.kind = Kind::transfer, .what = "copy x", .device = "gpu", .from = "cpu", .start_us = 5, .duration_us = 1})
      .add({.kind = Kind::transfer, .what = "copy y", .device = "cpu", .from = "gpu", .start_us = 7, .duration_us = 1})
      .add({.kind = Kind::op, .what = "add a", .device = "cpu", .start_us = 2, .duration_us = 1})
      .add({.what = "step 0", .device = "cpu", .start_us = 2, .duration_us = 3})
      .add({.what = "step 2", .device = "gpu", .start_us = 6, .duration_us = 1})
      .add({.kind = Kind::run, .what = "plan 1", .start_us = 0, .duration_us = 9});
  EXPECT_EQ(tracks_in(json_of(sample.recorder())),
            (std::vector<std::string>{"runs", "cpu", "cpu ops", "gpu", "link cpu -> gpu", "link gpu -> cpu"}));
}

TEST(ChromeTrace, WhatOverlapsOnADeviceGetsATrackOfItsOwn) {
  SampleRecorder sample;
  sample.add({.what = "a", .device = "gpu", .start_us = 0, .duration_us = 4})
      .add({.what = "b", .device = "gpu", .start_us = 2, .duration_us = 4})
      .add({.what = "c", .device = "gpu", .start_us = 4, .duration_us = 1});
  const Json json = json_of(sample.recorder());
  EXPECT_EQ(tracks_in(json), (std::vector<std::string>{"gpu", "gpu (2)"}));
  std::vector<int> tracks;
  for (const Json& event : json["traceEvents"])
    if (event["ph"] == "X") tracks.push_back(event["tid"]);
  EXPECT_EQ(tracks, (std::vector<int>{0, 1, 0}));
}

TEST(ChromeTrace, TheFirstTrackThatIsFreeIsTaken) {
  SampleRecorder sample;
  sample.add({.what = "a", .device = "gpu", .start_us = 0, .duration_us = 9})
      .add({.what = "b", .device = "gpu", .start_us = 1, .duration_us = 3})
      .add({.what = "c", .device = "gpu", .start_us = 2, .duration_us = 1})
      .add({.what = "d", .device = "gpu", .start_us = 4, .duration_us = 0})
      .add({.what = "e", .device = "gpu", .start_us = 4, .duration_us = 9})
      .add({.what = "f", .device = "gpu", .start_us = 5, .duration_us = 1})
      .add({.what = "g", .device = "gpu", .start_us = 6, .duration_us = 1})
      .add({.what = "h", .device = "gpu", .start_us = 9, .duration_us = 1});
  const Json json = json_of(sample.recorder());
  std::vector<int> tracks;
  for (const Json& event : json["traceEvents"])
    if (event["ph"] == "X") tracks.push_back(event["tid"]);
  EXPECT_EQ(tracks, (std::vector<int>{0, 1, 2, 1, 1, 2, 2, 0}));
}

TEST(ChromeTrace, TimesAreMicrosecondsSinceTheFirst) {
  SampleRecorder sample;
  sample.add({.what = "linear \"odd\"\n\xff", .device = "cpu", .start_us = 3, .duration_us = 2})
      .add({.what = "add", .device = "cpu", .start_us = 9, .duration_us = 1});
  const Json json = json_of(sample.recorder());
  ASSERT_TRUE(json.is_object());
  const Json& events = json["traceEvents"];
  EXPECT_EQ(events[2]["name"], "linear \"odd\"\n\uFFFD");
  EXPECT_EQ(events[2]["ts"], 0.0);
  EXPECT_EQ(events[2]["dur"], 2.0);
  EXPECT_EQ(events[3]["ts"], 6.0);
}

TEST(ChromeTrace, OfNothingIsAnEmptyOne) {
  Recorder recorder(4);
  const auto again = from_chrome_json(to_chrome_json(recording_of(recorder)), "nothing");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_TRUE(again->events.empty());
}

TEST(ChromeTrace, SaysHowMuchOfTheBeginningIsMissing) {
  SampleRecorder sample(4);
  for (std::uint64_t i = 0; i < 10; ++i) sample.add({.what = "a", .device = "cpu", .start_us = i});
  const Json json = json_of(sample.recorder());
  EXPECT_EQ(json["otherData"]["events_recorded"], 10);
  EXPECT_EQ(json["otherData"]["events_overwritten"], 6);
}

// All fields of an event and all attachments survive the round trip.
TEST(ChromeTrace, CanBeReadAgain) {
  Recorder recorder(8);
  recorder.set_enabled(true);
  recorder.attach(kPlans, R"({"predicted_us":1.5,"units":[{"op":"add"}]})");
  recorder.attach("command", R"({"model":"m.gguf"})");
  for (std::size_t kind = 0; kind <= static_cast<std::size_t>(Kind::load); ++kind)
    recorder.record({.start_ns = 1234567 + 1001 * kind,
                     .duration_ns = 1000 + kind,
                     .what = recorder.intern("linear blk.0"),
                     .device = recorder.intern("vulkan:0"),
                     .from = recorder.intern("cpu:simd"),
                     .reason = recorder.intern("lower predicted cost"),
                     .kind = static_cast<Kind>(kind),
                     .failed = kind == 2,
                     .code = kind == 2 ? Code::device_lost : Code::internal,
                     .step = 3,
                     .plan = 1,
                     .predicted_us = 1.25F,
                     .bytes = std::uint64_t{1} << 40U});
  const std::string json = to_chrome_json(recording_of(recorder));
  const auto again = from_chrome_json(json, "trace.json");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(to_chrome_json(*again), json);
  EXPECT_EQ(again->attachments, recorder.attachments());
  ASSERT_EQ(again->events.size(), recorder.snapshot().size());
  EXPECT_EQ(again->events[2].code, Code::device_lost);
  EXPECT_EQ(again->op_of(again->events[1]), "linear");
}

TEST(ChromeTrace, WhatIsNoTraceOfOursIsRefused) {
  const std::string good =
      to_chrome_json(recording_of(SampleRecorder().add({.what = "a", .device = "cpu"}).recorder()));
  ASSERT_TRUE(from_chrome_json(good, "good").has_value());
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string("null"), good.substr(0, good.size() / 2),
        std::string(R"({"traceEvents":[]})"),
        std::string(R"({"traceEvents":[{"ph":"B"}],"otherData":{"events_recorded":0}})"),
        std::string(R"({"traceEvents":[{"ph":"X","cat":"other","args":{}}],"otherData":{"events_recorded":0}})")}) {
    const auto recording = from_chrome_json(text, "some.json");
    ASSERT_FALSE(recording.has_value()) << text;
    EXPECT_EQ(recording.error().code, Code::invalid);
    EXPECT_TRUE(recording.error().message.starts_with("some.json: ")) << recording.error().message;
  }
}

TEST(ChromeTrace, ValuesOutOfRangeAreNoTrap) {
  const auto recording = from_chrome_json(
      R"({"traceEvents":[{"ph":"X","cat":"op","name":"a","ts":-5,"dur":1e300,
            "args":{"step":-1,"plan":1e15,"bytes":1e99}}],
          "otherData":{"events_recorded":-3}})",
      "odd");
  ASSERT_TRUE(recording.has_value()) << recording.error().message;
  ASSERT_EQ(recording->events.size(), 1U);
  EXPECT_EQ(recording->events[0].start_ns, 0U);
  EXPECT_EQ(recording->events[0].step, 0U);
  EXPECT_EQ(recording->events[0].plan, ~0U);
}

TEST(JsonLines, AreOneObjectPerEvent) {
  SampleRecorder sample;
  sample.add({.kind = Kind::op, .what = "add a", .device = "cpu", .start_us = 1, .duration_us = 2, .predicted_us = 4})
      .add({.kind = Kind::transfer, .what = "copy", .device = "gpu", .from = "cpu", .start_us = 4, .duration_us = 1});
  std::string lines = to_json_lines(recording_of(sample.recorder()));
  ASSERT_EQ(std::ranges::count(lines, '\n'), 2);
  const Json first = Json::parse(lines.substr(0, lines.find('\n')), nullptr, false);
  EXPECT_EQ(first, Json::parse(R"({"kind":"op","name":"add a","start_us":0.0,"duration_us":2.0,"device":"cpu","step":0,
                                   "outcome":"ok","predicted_us":4})"));
  const Json second = Json::parse(lines.substr(lines.find('\n')), nullptr, false);
  EXPECT_EQ(second["from"], "cpu");
  EXPECT_EQ(second["start_us"], 3.0);
}

}  // namespace
}  // namespace shunt::trace
