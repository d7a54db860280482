#include "trace/chrome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trace/event_json.h"
#include "trace/recording.h"
#include "trace/tracks.h"

namespace shunt::trace {
namespace {

std::string other_data(const Recording& recording) {
  std::string json =
      fmt::format("{{\"events_recorded\":{},\"events_overwritten\":{}", recording.recorded, recording.overwritten);
  for (const auto& [key, texts] : recording.attachments)
    json += fmt::format(",\n\"{}\":[{}]", key, fmt::join(texts, ",\n"));
  return json + "}";
}

}  // namespace

std::string to_chrome_json(const Recording& recording) {
  const std::uint64_t origin = origin_ns(recording);
  const Tracks tracks = tracks_of(recording);
  const std::vector<std::string> names = quoted(tracks.names);
  const std::vector<std::string> texts = quoted(recording.labels);
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* separator = "\n";
  const auto add = [&](const std::string& event) {
    json += separator + event;
    separator = ",\n";
  };
  for (std::size_t track = 0; track < names.size(); ++track) {
    const auto describe = [&](std::string_view what, std::string_view key, std::string_view value) {
      add(fmt::format(R"({{"ph":"M","name":"{}","pid":1,"tid":{},"args":{{"{}":{}}}}})", what, track, key, value));
    };
    describe("thread_name", "name", names[track]);
    describe("thread_sort_index", "sort_index", fmt::to_string(track));
  }
  for (std::size_t index = 0; index < recording.events.size(); ++index) {
    const ExecutionEvent& event = recording.events[index];
    add(fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                    texts[event.what], name_of(event.kind), tracks.of_event[index], us_of(event.start_ns - origin),
                    us_of(event.duration_ns), fields_of(event, texts).substr(1)));
  }
  return json + fmt::format("\n],\"otherData\":{}}}\n", other_data(recording));
}

}  // namespace shunt::trace
