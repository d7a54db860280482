// Amounts of memory as people write them. Pure function.
#pragma once

#include <optional>
#include <string_view>

namespace shunt {

// "24 GiB", "1.5MiB" or "64" (bytes), rounded down to a byte; nothing where it is no such text.
[[nodiscard]] std::optional<double> parse_bytes(std::string_view text);

}  // namespace shunt
