// Sizes and times as people read them, for messages and tables. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace shunt {

// "512 bytes", "1.5 KiB", "1.5 MiB", "1.50 GiB", "1.50 TiB"
[[nodiscard]] std::string in_units(std::uint64_t bytes);
// "1.5 us", "1.5 ms", "1.50 s"
[[nodiscard]] std::string in_time(double us);

}  // namespace shunt
