// Files of text that people asked for by name: traces, pages. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shunt/status.h"

namespace shunt::trace {

// The file appears when it is whole, or not at all, readable for whom files of this user are. Errors: invalid for what
// is no regular file, io.
[[nodiscard]] Status write_text_file(const std::string& path, std::string_view text);
// Whether write_text_file() would be let to write there; leaves nothing behind. Errors: the same.
[[nodiscard]] Status check_text_path(const std::string& path);
inline constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 30U;
// Errors: io; invalid for what is longer.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, std::uint64_t most_bytes = kMostTextBytes);

}  // namespace shunt::trace
