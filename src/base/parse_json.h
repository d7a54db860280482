// The one place where text becomes JSON, whatever its source: bounded in depth and size, without exceptions. JSON
// values are copied and written recursively, so deep ones would overflow the stack. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"

namespace shunt {

// Far more than any of our documents has.
inline constexpr std::uint32_t kMostJsonDepth = 64;
// A value takes at worst some sixteen times as much memory as its text.
inline constexpr std::uint64_t kMostJsonBytes = std::uint64_t{64} << 20U;
// A trace's events are not kept as JSON.
inline constexpr std::uint64_t kMostTraceBytes = std::uint64_t{512} << 20U;

// Returns whether the text nests no deeper than kMostJsonDepth. Brackets in strings do not count.
[[nodiscard]] bool is_shallow_json(std::string_view text);

// Returns a discarded value if the text is not JSON, is too deep, or is longer than `most_bytes`.
[[nodiscard]] inline Json parse_json(std::string_view text, std::uint64_t most_bytes = kMostJsonBytes,
                                     Json::parser_callback_t keep = nullptr) {
  if (text.size() > most_bytes || !is_shallow_json(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, std::move(keep), false);
}

}  // namespace shunt
