#include "base/parse_bytes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace shunt {

std::optional<double> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return std::floor(number);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto unit = std::ranges::find(kUnits, text);
  if (unit == std::end(kUnits)) return std::nullopt;
  return std::floor(std::ldexp(number, static_cast<int>(unit - std::begin(kUnits)) * 10));
}

}  // namespace shunt
