#include "models/text/stop_matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/text/utf8.h"

namespace shunt::models {

// REQUIRES: matched < text.size(); the stream is over after a complete match.
void StopMatcher::Pattern::advance(char byte) {
  while (matched > 0 && text[matched] != byte) matched = borders[matched - 1];
  if (text[matched] == byte) ++matched;
}

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  StopMatcher matcher;
  for (std::size_t index = 0; index < stops.size(); ++index) {
    std::string& stop = stops[index];
    if (stop.empty() || !is_utf8(stop))
      return fail(Code::invalid, fmt::format("stop string {} of {} is {}; give text in UTF-8", index + 1, stops.size(),
                                             stop.empty() ? "empty" : "not valid UTF-8"));
    Pattern pattern{.text = std::move(stop), .borders = {0}, .matched = 0};
    for (std::size_t at = 1; at < pattern.text.size(); ++at) {
      pattern.advance(pattern.text[at]);
      pattern.borders.push_back(pattern.matched);
    }
    pattern.matched = 0;
    matcher.patterns_.push_back(std::move(pattern));
  }
  return matcher;
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  for (const char byte : text) {
    held_ += byte;
    for (std::size_t index = 0; index < patterns_.size(); ++index) {
      Pattern& pattern = patterns_[index];
      pattern.advance(byte);
      if (pattern.matched == pattern.text.size() &&
          (!stopped_ || pattern.text.size() > patterns_[*stopped_].text.size()))
        stopped_ = index;
    }
    if (stopped_) {
      held_.resize(held_.size() - patterns_[*stopped_].text.size());
      return std::exchange(held_, {});
    }
  }
  std::size_t hold = 0;
  for (const Pattern& pattern : patterns_) hold = std::max(hold, pattern.matched);
  std::string released = held_.substr(0, held_.size() - hold);
  held_.erase(0, released.size());
  return released;
}

std::string StopMatcher::flush() {
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return std::exchange(held_, {});
}

std::optional<std::string_view> StopMatcher::stopped_by() const {
  if (!stopped_) return std::nullopt;
  return patterns_[*stopped_].text;
}

}  // namespace shunt::models
