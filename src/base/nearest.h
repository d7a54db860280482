// What somebody meant who wrote a name that does not exist. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shunt {

// Whether they differ at most in the case of ASCII letters.
[[nodiscard]] bool is_same_word(std::string_view a, std::string_view b);

// The name that takes the fewest changes to become `text`: a letter more, less, another, or two swapped; case is no
// change. A name that begins with three or more letters of `text` is one change away. Nothing where each takes more
// changes than a third of its letters, or a name of three letters would need another one.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view text, std::span<const std::string_view> names);

// " (did you mean NAME?)", or empty: to stand behind the name that does not exist.
template <class Names>
[[nodiscard]] std::string did_you_mean(std::string_view text, const Names& names) {
  std::vector<std::string_view> views;
  for (const auto& name : names) views.emplace_back(name);
  const auto found = nearest(text, views);
  return found ? " (did you mean " + std::string(*found) + "?)" : std::string();
}

}  // namespace shunt
