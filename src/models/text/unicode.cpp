#include "models/text/unicode.h"

#include <algorithm>
#include <iterator>

#include "models/text/unicode_classes.h"

namespace shunt::models {
namespace {

constexpr std::size_t kCount = kCategories.size() / 2;
constexpr CharacterClasses bit(std::size_t category) { return 1U << category; }

constexpr CharacterClasses named(std::string_view name) {
  CharacterClasses classes = 0;
  for (std::size_t category = 0; category < kCount; ++category)
    if (!name.empty() && kCategories.substr(2 * category, 2).starts_with(name)) classes |= bit(category);
  return classes;
}

// Controls that Unicode counts as white space: tab to carriage return, and next line.
constexpr bool is_space_control(char32_t code) { return (code >= 0x09 && code <= 0x0D) || code == 0x85; }

}  // namespace

CharacterClasses classes_of(char32_t code) {
  constexpr char32_t kLast = 0x10FFFF;
  if (code > kLast) return named("Cn");
  // Finds the last run that begins at or before `code`.
  const auto* const next =
      std::ranges::upper_bound(kCategoryRuns, static_cast<std::uint32_t>(code) << 8U | 0xFFU, std::ranges::less());
  const CharacterClasses category = bit(*std::prev(next) & 0xFFU);
  const bool space = (category & named("Z")) != 0 || is_space_control(code);
  return space ? category | kWhiteSpace : category;
}

std::optional<CharacterClasses> classes_named(std::string_view name) {
  const CharacterClasses classes = named(name);
  return classes == 0 ? std::nullopt : std::optional(classes);
}

}  // namespace shunt::models
