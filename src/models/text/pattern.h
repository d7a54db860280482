// The subset of regular expressions that published pre-tokenizers use, over Unicode characters.
//
// Characters, sets ([^a-z\r\n\p{L}]), \s \S \r \n \p{Lu}, groups (?: ) and (?i: ), lookahead (?= ) and (?! ),
// alternatives, and the greedy quantifiers ? * + {n} {n,m}; groups take only ?. Alternatives are tried in order and
// quantifiers backtrack, as usual. The stack needed depends on the size of the pattern, not of the text. An immutable
// plain value; all calls are safe from many threads.
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
  std::uint32_t begin = 0;  // in bytes of the source text
};

class Pattern {
 public:
  // Errors: invalid, with the position, if `source` uses anything else.
  [[nodiscard]] static Result<Pattern> parse(std::string_view source);

  // Returns the end of the match that begins at `at`, as an index of `text`, or nullopt.
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
    Set set;                             // for Kind::set
    std::vector<Sequence> alternatives;  // for the other kinds
    std::uint32_t least = 1;
    std::uint32_t most = 1;
  };

 private:
  explicit Pattern(std::vector<Sequence> alternatives) : alternatives_(std::move(alternatives)) {}

  std::vector<Sequence> alternatives_;
};

}  // namespace shunt::models
