// The part of regular expressions that published pre-tokenizers are written in, over Unicode characters.
//
// Characters, sets ([^a-z\r\n\p{L}]), \s \S \r \n \p{Lu}, groups (?: ) and (?i: ), lookahead (?= ) and (?! ),
// alternatives, and the greedy quantifiers ? * + {n} {n,m}; of a group only ?. Alternatives are tried in order and
// quantifiers give back, as usual. Matching needs stack by the size of the pattern, not of the text.
// A plain value, immutable; all calls are safe from many threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/unicode.h"
#include "shunt/status.h"

namespace shunt::models {

struct Character {
  char32_t code = 0;
  CharacterClasses classes = 0;
  std::uint32_t begin = 0;  // in bytes of the text that it was read from
};

class Pattern {
 public:
  // Errors: invalid where `source` is none of the above, with the place.
  [[nodiscard]] static Result<Pattern> parse(std::string_view source);

  // The end of the match that begins at `at`, as an index of `text`; nothing where there is none.
  [[nodiscard]] std::optional<std::size_t> match(std::span<const Character> text, std::size_t at) const;

  struct Set {
    CharacterClasses classes = 0;
    std::vector<std::pair<char32_t, char32_t>> ranges;  // first and last
    bool negated = false;
    [[nodiscard]] bool contains(const Character& character) const;
  };
  struct Item;
  using Sequence = std::vector<Item>;
  struct Item {
    enum class Kind : std::uint8_t { set, group, ahead, not_ahead };
    Kind kind = Kind::set;
    Set set;                             // of Kind::set
    std::vector<Sequence> alternatives;  // of the others
    std::uint32_t least = 1;
    std::uint32_t most = 1;
  };

 private:
  explicit Pattern(std::vector<Sequence> alternatives) : alternatives_(std::move(alternatives)) {}

  std::vector<Sequence> alternatives_;
};

}  // namespace shunt::models
