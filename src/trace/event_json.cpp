#include "trace/event_json.h"

#include <fmt/format.h>

#include "base/json.h"

namespace shunt::trace {

std::vector<std::string> quoted(std::span<const std::string> texts) {
  std::vector<std::string> quoted;
  quoted.reserve(texts.size());
  for (const std::string& text : texts)
    quoted.push_back(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
  return quoted;
}

std::string fields_of(const ExecutionEvent& event, std::span<const std::string> texts) {
  std::string json;
  if (event.device != 0) json += fmt::format(",\"device\":{}", texts[event.device]);
  if (event.from != 0) json += fmt::format(",\"from\":{}", texts[event.from]);
  json += fmt::format(",\"step\":{},\"outcome\":\"{}\"", event.step, outcome_of(event));
  if (event.plan != 0) json += fmt::format(",\"plan\":{}", event.plan);
  if (event.reason != 0) json += fmt::format(",\"reason\":{}", texts[event.reason]);
  if (event.predicted_us != 0) json += fmt::format(",\"predicted_us\":{}", event.predicted_us);
  if (event.bytes != 0) json += fmt::format(",\"bytes\":{}", event.bytes);
  return json;
}

}  // namespace shunt::trace
