#include "models/text/pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "models/text/pre_tokenizer.h"

namespace shunt::models {
namespace {

// Returns the length of the match at the start of an ASCII text, or -1.
int length(std::string_view pattern, std::string_view text) {
  const auto parsed = Pattern::parse(pattern);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  std::vector<Character> characters;
  for (const char letter : text) {
    const auto code = static_cast<char32_t>(letter);
    characters.push_back({.code = code, .classes = classes_of(code), .begin = 0});
  }
  const auto end = parsed->match(characters, 0);
  return end ? static_cast<int>(*end) : -1;
}

TEST(Pattern, TheFirstAlternativeThatMatchesWins) {
  EXPECT_EQ(length("a|ab", "ab"), 1);
  EXPECT_EQ(length("ab|a", "ab"), 2);
  EXPECT_EQ(length("b|c", "ab"), -1);
}

TEST(Pattern, QuantifiersTakeAllAndGiveBack) {
  EXPECT_EQ(length("a*ab", "aaab"), 4);
  EXPECT_EQ(length("a?ab", "ab"), 2);
  EXPECT_EQ(length("a{2}", "aaa"), 2);
  EXPECT_EQ(length("a{1,3}", "aaaa"), 3);
  EXPECT_EQ(length("a{2,3}", "ab"), -1);
  EXPECT_EQ(length("a+", "b"), -1);
}

TEST(Pattern, GroupsCanBeMissingAndFoldCase) {
  EXPECT_EQ(length("(?:ab|a)?b", "ab"), 2);
  EXPECT_EQ(length("(?:ab)?c", "c"), 1);
  EXPECT_EQ(length("(?i:'lL)x", "'Llx"), 4);
  EXPECT_EQ(length("(?i:a)a", "AA"), -1);  // only inside the group
}

TEST(Pattern, LookaheadTakesNothing) {
  EXPECT_EQ(length(R"(\s+(?!\S))", "   a"), 2);
  EXPECT_EQ(length(R"(\s+(?!\S))", "   "), 3);
  EXPECT_EQ(length(R"(\s+(?!\S))", " a"), -1);
  EXPECT_EQ(length("a(?=b)", "ab"), 1);
  EXPECT_EQ(length("a(?=b)", "ac"), -1);
}

TEST(Pattern, SetsHoldRangesClassesAndTheirOpposite) {
  EXPECT_EQ(length("[a-c]+", "abcd"), 3);
  EXPECT_EQ(length(R"([^\s\p{L}\p{N}]+)", "+-a"), 2);
  EXPECT_EQ(length(R"([\p{Lu}\r\n-]+)", "A-\r\na"), 4);
  EXPECT_EQ(length(R"(\p{Nd}\p{P})", "1."), 2);
  EXPECT_EQ(length(R"(\S\s)", "a "), 2);
}

TEST(Pattern, WhatItCannotReadIsAnErrorWithThePlace) {
  for (const std::string_view wrong : {"(a)", "(?:a", "a)", "[a", "[b-a]", R"(\p{Xx})", R"(\p{L)", R"(\d)", "a{2",
                                       "a{x}", "(?:a)+", "(?=a)?", "\xFF", "\\"}) {
    const auto pattern = Pattern::parse(wrong);
    ASSERT_FALSE(pattern.has_value()) << wrong;
    EXPECT_EQ(pattern.error().code, Code::invalid);
    EXPECT_NE(pattern.error().message.find(" at byte "), std::string::npos) << pattern.error().message;
  }
}

TEST(Unicode, ClassesAreThoseOfTheStandard) {
  const auto in = [](char32_t code, std::string_view name) { return (classes_of(code) & *classes_named(name)) != 0; };
  EXPECT_TRUE(in(U'A', "Lu") && in(U'A', "L") && !in(U'A', "Ll"));
  EXPECT_TRUE(in(0x1C5, "Lt") && in(0x2B0, "Lm") && in(0x4E2D, "Lo") && in(0x301, "M") && in(0x661, "Nd"));
  EXPECT_TRUE(in(0x2167, "Nl") && in(0xBD, "No") && in(U'_', "Pc") && in(U'$', "Sc") && in(0x1F600, "So"));
  EXPECT_TRUE(in(0x10FFFF, "Cn") && in(0x110000, "Cn") && in(0xD800, "Cs") && in(0xE000, "Co") && in(0, "Cc"));
  for (const char32_t space : {0x09U, 0x0DU, 0x20U, 0x85U, 0xA0U, 0x1680U, 0x2028U, 0x3000U})
    EXPECT_NE(classes_of(space) & kWhiteSpace, 0U) << static_cast<std::uint32_t>(space);
  for (const char32_t other : {0x08U, 0x1CU, 0x200BU, 0xFEFFU, 0x41U})
    EXPECT_EQ(classes_of(other) & kWhiteSpace, 0U) << static_cast<std::uint32_t>(other);
  EXPECT_FALSE(classes_named("Xx").has_value());
  EXPECT_FALSE(classes_named("").has_value());
}

std::vector<std::string> words(std::string_view name, std::string_view text) {
  std::vector<std::string_view> views;
  PreTokenizer::create(name)->append_words(text, views);
  return {views.begin(), views.end()};
}

using Words = std::vector<std::string>;

TEST(PreTokenizers, CutAsTheirFamiliesDo) {
  EXPECT_EQ(words("gpt-2", "I'm HE'S 1234  x\n"), (Words{"I", "'m", " HE", "'", "S", " 1234", " ", " x", "\n"}));
  EXPECT_EQ(words("llama-bpe", "HE'S 1234  x\n"), (Words{"HE", "'S", " ", "123", "4", " ", " x", "\n"}));
  EXPECT_EQ(words("qwen2", "12 a"), (Words{"1", "2", " a"}));
  EXPECT_EQ(words("smollm", "it's 12"), (Words{"it", "'s", " ", "1", "2"}));
  EXPECT_EQ(words("tekken", "camelCase ABc's"), (Words{"camel", "Case", " ABc", "'s"}));
  EXPECT_EQ(words("gpt-4o", "camelCase ABc's"), (Words{"camel", "Case", " ABc's"}));
  EXPECT_EQ(words("default", "a.1234"), (Words{"a", ".", "123", "4"}));
  EXPECT_EQ(words("default", ""), Words{});
}

TEST(PreTokenizers, EveryNameOfTheTableWorksAndKeepsTheText) {
  const std::string text = "It's 12345  \xC3\xA9t\xC3\xA9\n\n \xFF!";
  for (const std::string_view name : pre_tokenizer_names()) {
    std::string joined;
    for (const std::string& word : words(name, text)) joined += word;
    EXPECT_EQ(joined, text) << name;
  }
  EXPECT_EQ(words("llama3", "x 1"), words("llama-bpe", "x 1"));
}

TEST(PreTokenizers, UnknownNamesAreUnsupportedWithTheKnownOnes) {
  const auto unknown = PreTokenizer::create("gpt-9");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Code::unsupported);
  EXPECT_EQ(unknown.error().message.find("pre-tokenizer \"gpt-9\" (tokenizer.ggml.pre) is not known; known: default, "),
            0U);
  EXPECT_NE(unknown.error().message.find("deepseek-r1-qwen"), std::string::npos);
}

TEST(PreTokenizers, LongRunsAreNoTrap) {
  for (const std::string_view name : pre_tokenizer_names())
    for (const char letter : {' ', 'a', 'A', '\n', '1', '.'})
      EXPECT_FALSE(words(name, std::string(1U << 13U, letter)).empty());
}

}  // namespace
}  // namespace shunt::models
