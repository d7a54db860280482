// Finds stop strings in streamed text and holds back what may be the beginning of one.
//
// The result does not depend on how the text is cut into pieces. The stop string that is completed first ends the text;
// of those completed by the same byte, the longest does. One object serves one stream and one thread at a time. If
// pieces are cut between characters, as Utf8Stream does, so is the output.
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
  // Without stop strings all text passes at once. Errors: invalid if a stop string is empty or not UTF-8, as it would
  // match always or never.
  [[nodiscard]] static Result<StopMatcher> create(std::vector<std::string> stops);

  // Returns the text now known to precede any stop string; empty once stopped.
  [[nodiscard]] std::string push(std::string_view text);
  // Ends the text and returns what was held back, unless a stop string was found.
  [[nodiscard]] std::string flush();
  // The stop string that was found; from then on push and flush return nothing.
  [[nodiscard]] std::optional<std::string_view> stopped_by() const;

 private:
  // The automaton of Knuth, Morris and Pratt (1977) for one stop string.
  struct Pattern {
    std::string text;
    std::vector<std::size_t> borders;  // [i]: length of the longest proper border of text[0..i]
    std::size_t matched = 0;           // length of the prefix of `text` that the input ends with

    void advance(char byte);
  };

  std::vector<Pattern> patterns_;
  std::string held_;
  std::optional<std::size_t> stopped_;  // index into patterns_
};

}  // namespace shunt::models
