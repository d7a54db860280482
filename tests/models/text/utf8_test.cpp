#include "models/text/utf8.h"

#include <gtest/gtest.h>

namespace shunt::models {
namespace {

constexpr std::string_view kText = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";

TEST(Utf8Stream, CharactersComeOutWholeHoweverTheyAreCut) {
  for (std::size_t step = 1; step <= kText.size(); ++step) {
    Utf8Stream stream;
    std::string text;
    for (std::size_t at = 0; at < kText.size(); at += step) {
      const std::string part = stream.push(kText.substr(at, step));
      EXPECT_TRUE(is_utf8(part)) << "step " << step;
      text += part;
    }
    EXPECT_EQ(text, kText) << "step " << step;
    EXPECT_EQ(stream.flush(), "");
  }
}

TEST(Utf8Stream, ACharacterIsReleasedWithItsLastByte) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x80"), "\xF0\x9F\x98\x80");
}

// The examples of section 3.9 of the Unicode standard on replacing maximal subparts.
TEST(Utf8Stream, InvalidUnitsBecomeOneReplacementEach) {
  const std::string r = "\xEF\xBF\xBD";
  const std::pair<std::string_view, std::string> cases[] = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", r + r + r + r + r + r + r + r + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", r + r + r + r + r + r + r + r + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", r + r + r + r + r + "A" + r + r + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", r + r + r + r + "A"},
      {"\xF5\x80", r + r},
  };
  for (const auto& [bytes, expected] : cases)
    for (std::size_t step = 1; step <= bytes.size(); ++step) {
      Utf8Stream stream;
      std::string text;
      for (std::size_t at = 0; at < bytes.size(); at += step) text += stream.push(bytes.substr(at, step));
      EXPECT_EQ(text + stream.flush(), expected) << "step " << step;
    }
}

TEST(Utf8Stream, FlushReplacesWhatIsIncompleteAndStartsAfresh) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("ab\xE2\x82"), "ab");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("\xC3\xA9"), "\xC3\xA9");
}

TEST(Utf8, BoundsOfTheCodeSpace) {
  EXPECT_TRUE(is_utf8("\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"));
  for (const std::string_view bytes : {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                       "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xE2\x82"})
    EXPECT_FALSE(is_utf8(bytes));
}

}  // namespace
}  // namespace shunt::models
