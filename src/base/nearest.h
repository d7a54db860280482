// Suggests a name for a misspelt one. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/status.h"

namespace shunt {

// Returns whether they differ at most in the case of ASCII letters.
[[nodiscard]] bool is_same_word(std::string_view a, std::string_view b);

// Returns the name with the fewest changes to `text`: a letter added, removed, replaced, or two swapped; case is
// ignored. A name that begins with `text`, of three or more letters, is one change away. Returns nullopt if each name
// needs more changes than a third of its letters, or if a three-letter name would need a different letter.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view text, std::span<const std::string_view> names);

// Returns " (did you mean NAME?)", or an empty string, to append to an unknown name.
template <class Names>
[[nodiscard]] std::string did_you_mean(std::string_view text, const Names& names) {
  std::vector<std::string_view> views;
  for (const auto& name : names) views.emplace_back(name);
  const auto found = nearest(text, views);
  return found ? " (did you mean " + std::string(*found) + "?)" : std::string();
}

// Returns the place of `name` among the names of a kind of thing. Errors: invalid, with a list of the names.
[[nodiscard]] Result<std::size_t> place_of_name(std::string_view kind, std::string_view name,
                                                std::span<const std::string_view> names);

}  // namespace shunt
