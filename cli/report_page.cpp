#include "report_page.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "trace/recording.h"
#include "trace/tracks.h"

namespace shunt {

#define SHUNT_PART(part)                  \
  extern const std::byte report_##part[]; \
  extern const std::size_t report_##part##_bytes;
SHUNT_PART(html)
SHUNT_PART(css)
SHUNT_PART(js)
SHUNT_PART(charts)
#undef SHUNT_PART

}  // namespace shunt

namespace shunt::cli {
namespace {

using trace::ExecutionEvent;
using trace::Recording;

// The timeline leaves out the shortest events beyond this number: they would slow the page down and show nothing.
constexpr std::size_t kMostEvents = 60'000;

std::string_view text(const std::byte* bytes, std::size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

// The events that the timeline shows, sorted by start.
struct Shown {
  std::vector<std::size_t> events;
  std::size_t left_out = 0;
  std::uint64_t longest_left_out_ns = 0;
};

Shown choose(const Recording& recording) {
  Shown shown;
  shown.events.resize(recording.events.size());
  for (std::size_t index = 0; index < shown.events.size(); ++index) shown.events[index] = index;
  const auto duration = [&](std::size_t index) { return recording.events[index].duration_ns; };
  if (shown.events.size() > kMostEvents) {
    shown.left_out = shown.events.size() - kMostEvents;
    const auto rest = shown.events.begin() + kMostEvents;
    std::ranges::nth_element(shown.events, rest, std::ranges::greater(), duration);
    shown.longest_left_out_ns = duration(*rest);
    shown.events.resize(kMostEvents);
  }
  std::ranges::sort(shown.events, {}, [&](std::size_t index) { return recording.events[index].start_ns; });
  return shown;
}

// Returns columns with one value per event; times are in nanoseconds since the first event.
Json timeline_of(const Recording& recording) {
  const Shown shown = choose(recording);
  const trace::Tracks tracks = trace::tracks_of(recording);
  const std::uint64_t origin = trace::origin_ns(recording);
  Json columns = Json::object();
  const auto add = [&](const char* name, auto value_of) {
    Json::array_t column;
    column.reserve(shown.events.size());
    for (const std::size_t index : shown.events) column.emplace_back(value_of(recording.events[index], index));
    columns[name] = std::move(column);
  };
  add("track", [&](const ExecutionEvent&, std::size_t index) { return tracks.of_event[index]; });
  add("start", [&](const ExecutionEvent& event, std::size_t) { return event.start_ns - origin; });
  add("duration", [](const ExecutionEvent& event, std::size_t) { return event.duration_ns; });
  add("kind", [](const ExecutionEvent& event, std::size_t) { return trace::name_of(event.kind); });
  add("name", [](const ExecutionEvent& event, std::size_t) { return event.what; });
  add("device", [](const ExecutionEvent& event, std::size_t) { return event.device; });
  add("reason", [](const ExecutionEvent& event, std::size_t) { return event.reason; });
  add("predicted_us", [](const ExecutionEvent& event, std::size_t) { return event.predicted_us; });
  add("step", [](const ExecutionEvent& event, std::size_t) { return event.step; });
  add("plan", [](const ExecutionEvent& event, std::size_t) { return event.plan; });
  add("bytes", [](const ExecutionEvent& event, std::size_t) { return event.bytes; });
  add("outcome", [](const ExecutionEvent& event, std::size_t) { return outcome_of(event); });
  return {{"tracks", tracks.names},
          {"labels", recording.labels},
          {"columns", std::move(columns)},
          {"left_out", shown.left_out},
          {"longest_left_out_us", trace::us_of(shown.longest_left_out_ns)}};
}

// Returns JSON that is safe in a script element: it contains no "</script>" and no "<!--".
std::string in_script(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

struct Part {
  std::string_view mark;
  std::string_view content;
};

// Replaces each mark, which occurs once, by the content of its part.
std::string fill(std::string_view page, std::span<const Part> parts) {
  std::string filled;
  for (const Part& part : parts) {
    const std::size_t place = page.find(part.mark);
    filled += page.substr(0, place);
    filled += part.content;
    page.remove_prefix(place + part.mark.size());
  }
  return filled += page;
}

}  // namespace

bool has_charts() { return report_charts_bytes > 0; }

std::string report_page(Json facts, const Recording& recording) {
  facts["timeline"] = timeline_of(recording);
  const std::string data = in_script(facts);
  // In the order in which the page has them.
  const std::array parts = {Part{"/* STYLE */", text(report_css, report_css_bytes)}, Part{"DATA", data},
                            Part{"/* CHARTS */", text(report_charts, report_charts_bytes)},
                            Part{"/* SCRIPT */", text(report_js, report_js_bytes)}};
  return fill(text(report_html, report_html_bytes), parts);
}

}  // namespace shunt::cli
