#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/parse_json.h"
#include "base/system/text_file.h"
#include "trace/chrome.h"

namespace shunt::trace {
namespace {

// The upper limit of times in traces: 30 years in microseconds.
constexpr double kMostUs = 1e15;

std::optional<Kind> kind_from_name(std::string_view name) {
#define SHUNT_TRACE_KIND(kind) \
  if (name == #kind) return Kind::kind;
  SHUNT_TRACE_KINDS(SHUNT_TRACE_KIND)
#undef SHUNT_TRACE_KIND
  return std::nullopt;
}

Code code_from_name(std::string_view name) {
#define SHUNT_CODE(code, c_name, meaning) \
  if (name == #code) return Code::code;
  SHUNT_ERROR_CODES(SHUNT_CODE)
#undef SHUNT_CODE
  return Code::internal;
}

// Fills a recording event by event, so that not all events need be JSON values at once.
class Reader {
 public:
  // False: to_chrome_json() does not write such an event.
  bool add(const Json& json) {
    if (!json.is_object()) return false;
    const std::string phase = text(json, "ph");
    if (phase == "M") return true;
    const auto kind = kind_from_name(text(json, "cat"));
    const auto args = json.find("args");
    if (phase != "X" || !kind || args == json.end() || !args->is_object()) return false;
    ExecutionEvent event{.start_ns = ns(json, "ts"),
                         .duration_ns = ns(json, "dur"),
                         .what = intern(text(json, "name")),
                         .device = intern(text(*args, "device")),
                         .from = intern(text(*args, "from")),
                         .reason = intern(text(*args, "reason")),
                         .kind = *kind,
                         .step = number32(*args, "step"),
                         .plan = number32(*args, "plan"),
                         .predicted_us = static_cast<float>(number(*args, "predicted_us")),
                         .bytes = static_cast<std::uint64_t>(number(*args, "bytes"))};
    const std::string outcome = text(*args, "outcome");
    event.failed = outcome != "ok";
    if (event.failed) event.code = code_from_name(outcome);
    recording_.events.push_back(event);
    return true;
  }

  // False: to_chrome_json() does not write this next to the events.
  bool add_rest(const Json& other) {
    if (!other.is_object() || !other.contains("events_recorded")) return false;
    recording_.recorded = static_cast<std::uint64_t>(number(other, "events_recorded"));
    recording_.overwritten = static_cast<std::uint64_t>(number(other, "events_overwritten"));
    for (const auto& [key, values] : other.items())
      if (values.is_array())
        for (const Json& value : values) recording_.attachments[key].push_back(value.dump());
    return true;
  }

  [[nodiscard]] Recording take() { return std::move(recording_); }

 private:
  Label intern(const std::string& text) {
    if (text.empty()) return 0;
    const auto [place, is_new] = labels_.try_emplace(text, static_cast<Label>(recording_.labels.size()));
    if (is_new) recording_.labels.push_back(text);
    return place->second;
  }

  static std::string text(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

  // Returns a number, clamped to 0 .. kMostUs; 0 if there is none.
  static double number(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? std::clamp(found->get<double>(), 0.0, kMostUs) : 0;
  }

  // Returns a number, clamped to what 32 bits can hold; 0 if there is none.
  static std::uint32_t number32(const Json& json, const char* key) {
    constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::min(number(json, key), kMost));
  }

  static std::uint64_t ns(const Json& json, const char* key) {
    return static_cast<std::uint64_t>(std::llround(number(json, key) * 1e3));
  }

  Recording recording_{.labels = {""}};
  std::unordered_map<std::string, Label> labels_;
};

}  // namespace

Result<Recording> from_chrome_json(std::string_view text, std::string_view origin) {
  Reader reader;
  bool in_events = false;
  bool is_ours = true;
  const auto keep = [&](int depth, Json::parse_event_t what, Json& parsed) {
    if (depth == 1 && what == Json::parse_event_t::key) in_events = parsed == "traceEvents";
    if (depth != 2 || !in_events || what != Json::parse_event_t::object_end) return true;
    is_ours = reader.add(parsed) && is_ours;
    return false;
  };
  const Json rest = parse_json(text, kMostTraceBytes, keep);
  if (rest.is_discarded())
    return fail(
        Code::invalid,
        fmt::format("{}: it is not the JSON of a trace: it ends early, is nested too deeply, or is longer than {} MiB",
                    origin, kMostTraceBytes >> 20U));
  if (!is_ours || !rest.is_object() || !rest.contains("otherData") || !reader.add_rest(rest["otherData"]))
    return fail(
        Code::invalid,
        fmt::format("{}: it is not a trace of shunt; record one with `shunt run MODEL PROMPT --trace FILE`", origin));
  return reader.take();
}

Result<Recording> read_chrome_trace(const std::string& path) {
  SHUNT_TRY_ASSIGN(const std::string text, read_text_file(path));
  return from_chrome_json(text, path);
}

}  // namespace shunt::trace
