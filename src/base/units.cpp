#include "base/units.h"

#include <fmt/format.h>

#include <cmath>

namespace shunt {

std::string in_units(std::uint64_t bytes) {
  // A value that would round to 1024.0 of a unit is shown in the next one.
  const auto size = static_cast<double>(bytes);
  constexpr double kFull = 1023.95;
  if (bytes < 1024) return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  if (size < kFull * 0x1p10) return fmt::format("{:.1f} KiB", size / 0x1p10);
  if (size < kFull * 0x1p20) return fmt::format("{:.1f} MiB", size / 0x1p20);
  if (size < kFull * 0x1p30) return fmt::format("{:.2f} GiB", size / 0x1p30);
  return fmt::format("{:.2f} TiB", size / 0x1p40);
}

std::string in_time(double us) {
  const double size = std::abs(us);
  if (size < 999.95) return fmt::format("{:.1f} us", us);
  if (size < 999.95e3) return fmt::format("{:.1f} ms", us / 1e3);
  return fmt::format("{:.2f} s", us / 1e6);
}

std::string in_percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string_view first_characters(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  std::size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

std::string shortened(std::string_view text, std::size_t most_bytes) {
  constexpr std::string_view kDots = "...";
  if (text.size() <= most_bytes) return std::string(text);
  return fmt::format("{}{}", first_characters(text, most_bytes - kDots.size()), kDots);
}

}  // namespace shunt
