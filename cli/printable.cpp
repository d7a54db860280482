#include "printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

#include "models/text/utf8.h"

namespace shunt::cli {
namespace {

bool steers(char32_t character) {
  if (character < 0x20) return character != '\n' && character != '\t';
  return (character >= 0x7f && character <= 0x9f) || (character >= 0x202a && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const models::Utf8Unit unit = models::first_utf8_unit(text);
    const std::string_view bytes = text.substr(0, unit.length);
    text.remove_prefix(unit.length);
    if (unit.kind != models::Utf8Unit::Kind::character) {
      for (const char byte : bytes)
        fmt::format_to(std::back_inserter(shown), "\\x{:02x}", static_cast<unsigned char>(byte));
    } else if (const char32_t character = models::code_point(bytes); !steers(character)) {
      shown += bytes;
    } else {
      const auto number = static_cast<std::uint32_t>(character);
      shown += number < 0x80 ? fmt::format("\\x{:02x}", number) : fmt::format("\\u{:04x}", number);
    }
  }
  return shown;
}

}  // namespace shunt::cli
