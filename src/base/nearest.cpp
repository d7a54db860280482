#include "base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

namespace shunt {
namespace {

constexpr std::size_t kLongestWord = 64;  // longer words are not names

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

// Returns the optimal string alignment distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> changes(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) changes[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) changes[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto same = [&](std::size_t x, std::size_t y) { return lower(a[x - 1]) == lower(b[y - 1]); };
      std::size_t& least = changes[i][j];
      least = std::min({changes[i - 1][j] + 1, changes[i][j - 1] + 1, changes[i - 1][j - 1] + (same(i, j) ? 0 : 1)});
      if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j)) least = std::min(least, changes[i - 2][j - 2] + 1);
    }
  return changes[a.size()][b.size()];
}

// Returns whether the words have equal length but different letters. For short names that is another name: a GPU is no
// CPU.
bool has_other_letters(std::string_view text, std::string_view name) {
  return text.size() == name.size() && !std::ranges::is_permutation(text, name, {}, lower, lower);
}

}  // namespace

bool is_same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> nearest(std::string_view text, std::span<const std::string_view> names) {
  constexpr std::size_t kBeginning = 3;
  if (text.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t fewest = 0;
  for (const std::string_view name : names) {
    if (name.size() > kLongestWord) continue;
    const std::size_t dashes = std::min(name.size(), name.find_first_not_of('-'));  // leading dashes do not count
    const std::size_t letters = name.size() - dashes;
    std::size_t changes = distance(text, name);
    if (letters > kBeginning && text.size() >= kBeginning + dashes && is_same_word(text, name.substr(0, text.size())))
      changes = std::min<std::size_t>(changes, 1);
    if (changes > std::max<std::size_t>(1, letters / 3) || changes >= letters) continue;
    if (letters <= kBeginning && has_other_letters(text, name)) continue;
    if (best && changes >= fewest) continue;
    best = name;
    fewest = changes;
  }
  return best;
}

Result<std::size_t> place_of_name(std::string_view kind, std::string_view name,
                                  std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  return fail(Code::invalid, fmt::format("unknown {} \"{}\"{}; choose from: {}", kind, name, did_you_mean(name, names),
                                         fmt::join(names, " ")));
}

}  // namespace shunt
