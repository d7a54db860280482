// Text files that users name: traces, pages. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shunt/status.h"

namespace shunt {

// Writes the file completely or not at all. Errors: those of WholeFile (base/system/whole_file.h).
[[nodiscard]] Status write_text_file(const std::string& path, std::string_view text);
inline constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 30U;
// Errors: io; invalid if the file is longer.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, std::uint64_t most_bytes = kMostTextBytes);

}  // namespace shunt
