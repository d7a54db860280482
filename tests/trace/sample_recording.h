// Made-up recordings of devices, links and ops, for tests.
#pragma once

#include <string_view>

#include "trace/recorder.h"
#include "trace/recording.h"

namespace shunt::test {

// Times in microseconds.
struct Happened {
  trace::Kind kind = trace::Kind::program;
  std::string_view what;
  std::string_view device;
  std::string_view from = {};
  std::uint64_t start_us = 0;
  std::uint64_t duration_us = 0;
  float predicted_us = 0;
};

// An enabled recorder to which events are added.
class SampleRecorder {
 public:
  explicit SampleRecorder(std::size_t capacity = 64) : recorder_(capacity) { recorder_.set_enabled(true); }

  SampleRecorder& add(const Happened& happened) {
    recorder_.record({.start_ns = (kStartUs + happened.start_us) * 1000,
                      .duration_ns = happened.duration_us * 1000,
                      .what = recorder_.intern(happened.what),
                      .device = recorder_.intern(happened.device),
                      .from = recorder_.intern(happened.from),
                      .kind = happened.kind,
                      .predicted_us = happened.predicted_us});
    return *this;
  }

  [[nodiscard]] trace::Recorder& recorder() { return recorder_; }

 private:
  static constexpr std::uint64_t kStartUs = 1'000'000;
  trace::Recorder recorder_;
};

}  // namespace shunt::test
