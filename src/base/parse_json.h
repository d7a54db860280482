// The one place where text becomes JSON, whoever wrote it: bounded in depth and size, without exceptions. Values of
// JSON are copied and written by recursion, so that a deep one would end the process. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"

namespace shunt {

// Far more than any of ours has.
inline constexpr std::uint32_t kMostJsonDepth = 64;
// A value takes some sixteen times as much memory as its text at worst.
inline constexpr std::uint64_t kMostJsonBytes = std::uint64_t{64} << 20U;
// A trace's events are not kept as JSON.
inline constexpr std::uint64_t kMostTraceBytes = std::uint64_t{512} << 20U;

// Whether the text nests no deeper than kMostJsonDepth. Brackets in strings do not count.
[[nodiscard]] bool is_shallow_json(std::string_view text);

// A discarded value where the text is no JSON, too deep or longer than `most_bytes`.
[[nodiscard]] inline Json parse_json(std::string_view text, std::uint64_t most_bytes = kMostJsonBytes,
                                     Json::parser_callback_t keep = nullptr) {
  if (text.size() > most_bytes || !is_shallow_json(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, std::move(keep), false);
}

}  // namespace shunt
