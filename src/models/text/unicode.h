// Unicode properties of characters: general categories and white space. Free functions over a generated table
// (tools/unicode_classes.py); safe from many threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shunt::models {

// A set of classes of characters: a bit for each general category, and one for the property White_Space.
using CharacterClasses = std::uint32_t;
inline constexpr CharacterClasses kWhiteSpace = 1U << 31U;

// Returns the category of a character, and kWhiteSpace if it is white space. Values that are not code points are
// unassigned.
[[nodiscard]] CharacterClasses classes_of(char32_t code);

// Parses "Lu" as that category and "L" as all that begin with L. Returns nullopt if there is no such category.
[[nodiscard]] std::optional<CharacterClasses> classes_named(std::string_view name);

}  // namespace shunt::models
