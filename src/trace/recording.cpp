#include "trace/recording.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/event_json.h"
#include "trace/recorder.h"

namespace shunt::trace {

std::string_view Recording::op_of(const ExecutionEvent& event) const {
  const std::string_view name = text_of(event.what);
  return name.substr(0, name.find(' '));
}

Recording recording_of(const Recorder& recorder) {
  // Copy labels last, so that they include every event's.
  Recording recording{.events = recorder.snapshot(),
                      .labels = {},
                      .attachments = recorder.attachments(),
                      .recorded = recorder.recorded(),
                      .overwritten = recorder.overwritten()};
  recording.labels = recorder.labels();
  return recording;
}

std::uint64_t complete_since_ns(const Recording& recording) {
  if (recording.overwritten == 0 || recording.events.empty()) return 0;
  // Events are in the order in which they ended, and those that are missing ended before the first.
  const ExecutionEvent& first = recording.events.front();
  return first.start_ns + first.duration_ns;
}

Recording joined(Recording first, Recording later) {
  const std::uint64_t complete_ns = complete_since_ns(later);
  for (const ExecutionEvent& event : later.events)
    if (event.kind != Kind::run || event.start_ns >= complete_ns) first.events.push_back(event);
  first.recorded = first.events.size() + first.overwritten;
  first.labels = std::move(later.labels);
  first.attachments = std::move(later.attachments);
  return first;
}

std::string_view outcome_of(const ExecutionEvent& event) { return event.failed ? shunt::name_of(event.code) : "ok"; }

std::uint64_t origin_ns(const Recording& recording) {
  const auto first = std::ranges::min_element(recording.events, {}, &ExecutionEvent::start_ns);
  return first == recording.events.end() ? 0 : first->start_ns;
}

std::string to_json_lines(const Recording& recording) {
  const std::uint64_t origin = origin_ns(recording);
  const std::vector<std::string> texts = quoted(recording.labels);
  std::string lines;
  for (const ExecutionEvent& event : recording.events)
    lines += fmt::format("{{\"kind\":\"{}\",\"name\":{},\"start_us\":{:.3f},\"duration_us\":{:.3f}{}}}\n",
                         name_of(event.kind), texts[event.what], us_of(event.start_ns - origin),
                         us_of(event.duration_ns), fields_of(event, texts));
  return lines;
}

}  // namespace shunt::trace
