#include "models/text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace shunt::models {
namespace {

StopMatcher make(std::vector<std::string> stops) {
  auto matcher = StopMatcher::create(std::move(stops));
  EXPECT_TRUE(matcher.has_value()) << matcher.error().message;
  return std::move(*matcher);
}

TEST(StopMatcher, WithoutStopStringsEverythingPasses) {
  StopMatcher matcher = make({});
  EXPECT_EQ(matcher.push("any"), "any");
  EXPECT_EQ(matcher.flush(), "");
  EXPECT_FALSE(matcher.stopped_by().has_value());
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStopString) {
  StopMatcher matcher = make({"END"});
  EXPECT_EQ(matcher.push("the E"), "the ");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("E"), "EN");
  EXPECT_EQ(matcher.push("ND and more"), "");
  EXPECT_EQ(matcher.stopped_by(), "END");
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, FlushReleasesWhatWasHeld) {
  StopMatcher matcher = make({"END"});
  EXPECT_EQ(matcher.push("the EN"), "the ");
  EXPECT_EQ(matcher.flush(), "EN");
  EXPECT_EQ(matcher.push("D"), "D");
}

TEST(StopMatcher, OverlappingBeginningsAreSeen) {
  StopMatcher matcher = make({"aab"});
  EXPECT_EQ(matcher.push("aaaa"), "aa");
  EXPECT_EQ(matcher.push("b"), "");
  EXPECT_TRUE(matcher.stopped_by().has_value());
}

TEST(StopMatcher, TheFirstCompletedWinsAndOfTwoTheLongest) {
  StopMatcher first = make({"abcd", "bc"});
  EXPECT_EQ(first.push("xabcd"), "xa");
  EXPECT_EQ(first.stopped_by(), "bc");
  StopMatcher longest = make({"bc", "abc"});
  EXPECT_EQ(longest.push("xabcd"), "x");
  EXPECT_EQ(longest.stopped_by(), "abc");
}

TEST(StopMatcher, EmptyOrInvalidStopStringsAreErrors) {
  EXPECT_EQ(StopMatcher::create({"a", ""}).error().message, "stop string 2 of 2 is empty; give text in UTF-8");
  EXPECT_FALSE(StopMatcher::create({"\xFF"}).has_value());
}

TEST(StopMatcher, TheResultDoesNotDependOnHowTheTextIsCut) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto word = [&](std::size_t most) {
      std::string letters;
      for (std::size_t length = 1 + random() % most; length > 0; --length) letters += random() % 2 == 0 ? 'a' : 'b';
      return letters;
    };
    const std::vector<std::string> stops = {word(6), word(6)};
    const std::string text = word(40);
    // Expects the earliest end of a stop string and, among those that end there, the longest.
    std::string expected = text;
    for (std::size_t end = 1; end <= text.size() && expected.size() == text.size(); ++end)
      for (const std::string& stop : stops)
        if (std::string_view(text).substr(0, end).ends_with(stop))
          expected.resize(std::min(expected.size(), end - stop.size()));

    StopMatcher matcher = make(stops);
    std::string got;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t step = 1 + random() % 5;
      got += matcher.push(std::string_view(text).substr(at, step));
      EXPECT_TRUE(text.starts_with(got)) << "seed " << seed;
      at += step;
    }
    got += matcher.flush();
    EXPECT_EQ(got, expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace shunt::models
