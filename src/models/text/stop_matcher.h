// Finds stop strings in streamed text and holds back what might turn out to be the beginning of one.
//
// The result does not depend on how the text is cut into pieces: the stop string that is completed first
// ends the text, and of those completed by the same byte the longest. One object serves one stream and
// one thread at a time. Pieces should be cut between characters (Utf8Stream does that); output then is, too.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/status.h"

namespace shunt::models {

class StopMatcher {
 public:
  // Without stop strings everything passes at once.
  // Errors: invalid where a stop string is empty or not UTF-8; it could never or would always match.
  [[nodiscard]] static Result<StopMatcher> create(std::vector<std::string> stops);

  // The text that is now known to stand before any stop string; empty once stopped.
  [[nodiscard]] std::string push(std::string_view text);
  // The end of the text: what was held back, unless a stop string was found.
  [[nodiscard]] std::string flush();
  // The stop string that was found; push and flush return nothing from then on.
  [[nodiscard]] std::optional<std::string_view> stopped_by() const;

 private:
  // The automaton of Knuth, Morris and Pratt (1977) for one stop string.
  struct Pattern {
    std::string text;
    std::vector<std::size_t> borders;  // [i]: length of the longest proper border of text[0..i]
    std::size_t matched = 0;           // how much of `text` the input ends with

    void advance(char byte);
  };

  std::vector<Pattern> patterns_;
  std::string held_;
  std::optional<std::size_t> stopped_;  // index into patterns_
};

}  // namespace shunt::models
