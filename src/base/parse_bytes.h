// Parses amounts of memory. Pure function.
#pragma once

#include <optional>
#include <string_view>

namespace shunt {

// Parses "24 GiB", "1.5MiB" or "64" (bytes), rounded down to a byte; nullopt for any other text.
[[nodiscard]] std::optional<double> parse_bytes(std::string_view text);

}  // namespace shunt
