// Values that commands attach to a recording, so that a report finds them in its trace. Plain functions; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "base/field_json.h"
#include "base/parse_json.h"
#include "output.h"
#include "shunt/trace.h"
#include "trace/recorder.h"

namespace shunt::cli {

template <class T>
void attach_as(trace::Recorder& recorder, std::string_view key, const T& value) {
  recorder.attach(key, field_json::json_of(value).dump(-1, ' ', false, Json::error_handler_t::replace));
}

// Finds the value that was attached last.
template <class T>
[[nodiscard]] std::optional<T> find_attached(const trace::Recording& recording, std::string_view key) {
  const auto found = recording.attachments.find(key);
  T value;
  if (found == recording.attachments.end() || found->second.empty() ||
      !field_json::from_json(parse_json(found->second.back()), value))
    return std::nullopt;
  return value;
}

}  // namespace shunt::cli
