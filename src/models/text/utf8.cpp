#include "models/text/utf8.h"

#include <utility>

namespace shunt::models {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What a lead byte requires: the length of the character and the range of its second byte.
struct Lead {
  std::size_t length;
  std::uint8_t second_low;
  std::uint8_t second_high;
};

// Length 0 means that the byte begins no character.
Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Unit first_utf8_unit(std::string_view bytes) {
  using enum Utf8Unit::Kind;
  const Lead lead = lead_of(static_cast<std::uint8_t>(bytes[0]));
  if (lead.length == 0) return {invalid, 1};
  for (std::size_t at = 1; at < lead.length; ++at) {
    if (at == bytes.size()) return {incomplete, at};
    const auto byte = static_cast<std::uint8_t>(bytes[at]);
    const std::uint8_t low = at == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = at == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {invalid, at};
  }
  return {character, lead.length};
}

char32_t code_point(std::string_view character) {
  const auto lead = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return lead;
  char32_t code = lead & (0xFFU >> (character.size() + 1));
  for (const char byte : character.substr(1)) code = code << 6U | (static_cast<std::uint8_t>(byte) & 0x3FU);
  return code;
}

bool is_utf8(std::string_view bytes) { return first_invalid_byte(bytes) == bytes.size(); }

std::size_t first_invalid_byte(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Unit unit = first_utf8_unit(bytes.substr(at));
    if (unit.kind != Utf8Unit::Kind::character) break;
    at += unit.length;
  }
  return at;
}

std::string Utf8Stream::push(std::string_view bytes) {
  const std::string all = std::exchange(pending_, {}) + std::string(bytes);
  std::string text;
  text.reserve(all.size());
  for (std::string_view rest = all; !rest.empty();) {
    const Utf8Unit unit = first_utf8_unit(rest);
    if (unit.kind == Utf8Unit::Kind::incomplete) {
      pending_ = rest;
      break;
    }
    text += unit.kind == Utf8Unit::Kind::character ? rest.substr(0, unit.length) : kReplacement;
    rest.remove_prefix(unit.length);
  }
  return text;
}

std::string Utf8Stream::flush() {
  return std::exchange(pending_, {}).empty() ? std::string() : std::string(kReplacement);
}

}  // namespace shunt::models
