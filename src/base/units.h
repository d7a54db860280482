// Formats sizes, times, shares and names for messages and tables. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shunt {

// Returns "512 bytes", "1.5 KiB", "1.5 MiB", "1.50 GiB", "1.50 TiB".
[[nodiscard]] std::string in_units(std::uint64_t bytes);
// Returns "1.5 us", "1.5 ms", "1.50 s".
[[nodiscard]] std::string in_time(double us);
// Returns "50 %" of 0.5.
[[nodiscard]] std::string in_percent(double share);

// Columns are padded to at most this many bytes, so that one long name in a file does not widen every line.
inline constexpr std::size_t kMostColumnBytes = 64;
// Returns the first UTF-8 characters, at most `most_bytes` bytes.
[[nodiscard]] std::string_view first_characters(std::string_view text, std::size_t most_bytes);
// Returns the text, or its first characters and three dots: at most `most_bytes` of UTF-8. REQUIRES: most_bytes >= 3.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most_bytes = kMostColumnBytes);

}  // namespace shunt
