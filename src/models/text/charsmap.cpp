#include "models/text/charsmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/text/utf8.h"

namespace shunt::models {
namespace {

// A unit of a darts-clone double array: https://github.com/s-yata/darts-clone
constexpr std::uint32_t kLeaf = 1U << 31U;
// The longest character sequence, and the longest replacement. Unicode needs less, and longer replacements would let a
// map make much text from little.
constexpr std::size_t kMostBytes = 256;

constexpr std::size_t offset(std::uint32_t unit) { return std::size_t{unit >> 10U} << ((unit & 1U << 9U) >> 6U); }
constexpr bool has_leaf(std::uint32_t unit) { return (unit >> 8U & 1U) != 0; }
constexpr std::uint32_t label(std::uint32_t unit) { return unit & (kLeaf | 0xFFU); }

std::uint32_t read_u32(std::span<const std::uint8_t> bytes, std::size_t at) {
  return bytes[at] | std::uint32_t{bytes[at + 1]} << 8U | std::uint32_t{bytes[at + 2]} << 16U |
         std::uint32_t{bytes[at + 3]} << 24U;
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  Charsmap map;
  if (bytes.empty()) return map;
  const std::size_t size = bytes.size() < kWord ? 0 : read_u32(bytes, 0);
  if (size == 0 || size % kWord != 0 || size > bytes.size() - kWord ||
      (size + kWord < bytes.size() && bytes.back() != 0))
    return fail(Code::invalid, fmt::format("tokenizer.ggml.precompiled_charsmap has {} bytes, which are no map of "
                                           "characters (its array is said to have {})",
                                           bytes.size(), size));
  map.units_.reserve(size / kWord);
  for (std::size_t at = kWord; at < kWord + size; at += kWord) map.units_.push_back(read_u32(bytes, at));
  map.texts_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(kWord + size), bytes.end());
  return map;
}

Charsmap::Replacement Charsmap::first(std::string_view text) const {
  struct Found {
    std::size_t begin;  // in texts_
    std::size_t length;
  };
  std::optional<Found> longest;
  std::size_t node = units_.empty() ? 0 : offset(units_[0]);
  for (std::size_t at = 0; at < std::min(text.size(), kMostBytes); ++at) {
    node ^= static_cast<std::uint8_t>(text[at]);
    if (node >= units_.size() || label(units_[node]) != static_cast<std::uint8_t>(text[at])) break;
    const bool ends = has_leaf(units_[node]);
    node ^= offset(units_[node]);
    if (!ends || node >= units_.size()) continue;
    const std::size_t begin = units_[node] & ~kLeaf;
    if (begin >= texts_.size()) continue;
    longest = Found{.begin = begin, .length = at + 1};
  }
  if (longest) {
    const std::string_view rest = std::string_view(texts_).substr(longest->begin, kMostBytes + 1);
    if (const std::size_t end = rest.find('\0'); end != std::string_view::npos)
      return {.text = rest.substr(0, end), .length = longest->length};
  }
  const std::size_t length = first_utf8_unit(text).length;
  return {.text = text.substr(0, length), .length = length};
}

}  // namespace shunt::models
