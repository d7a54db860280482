#include "models/text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "models/text/small_vocabulary.h"

namespace shunt::models {
namespace {

using Tokens = std::vector<Token>;

Tokenizer make(const Metadata& metadata) {
  auto tokenizer = Tokenizer::create(metadata);
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return std::move(*tokenizer);
}

// Returns the pieces of a text, with control tokens by name.
std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  std::vector<std::string> result;
  for (const Token token : tokenizer.encode(text, options).value_or(Tokens{-1}))
    result.emplace_back(tokenizer.piece(token, true));
  return result;
}

using Pieces = std::vector<std::string>;

TEST(Tokenizer, BestScoreMergesFirstAndTheSpaceStandsBeforeTheText) {
  const Tokenizer tokenizer = make(small_vocabulary());
  EXPECT_EQ(pieces(tokenizer, "hello world"), (Pieces{" ", "hello", " world"}));
  EXPECT_EQ(pieces(tokenizer, "world"), (Pieces{" world"}));
  EXPECT_EQ(pieces(tokenizer, ""), Pieces{});
}

TEST(Tokenizer, OfEqualPairsTheLeftmostMerges) {
  const Tokenizer tokenizer = make(small_vocabulary());
  EXPECT_EQ(pieces(tokenizer, "aaa"), (Pieces{" ", "aa", "a"}));
  EXPECT_EQ(pieces(tokenizer, "aaaaaaa"), (Pieces{" ", "aaaa", "aa", "a"}));
}

TEST(Tokenizer, WithoutSpacePrefixTheTextStandsAlone) {
  Metadata metadata = small_vocabulary();
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer tokenizer = make(metadata);
  EXPECT_EQ(pieces(tokenizer, "world"), (Pieces{"w", "or", "ld"}));
  EXPECT_EQ(tokenizer.decode(*tokenizer.encode(" world")).value_or("?"), " world");
}

TEST(Tokenizer, WhatIsNoTokenBecomesBytes) {
  const Tokenizer tokenizer = make(small_vocabulary());
  EXPECT_EQ(tokenizer.encode("\xC3\xA9z\xC3\xA8").value_or(Tokens{}),
            (Tokens{kFirstPiece + 14, kFirstPiece + 26, 5 + 'z', 5 + 0xC3, 5 + 0xA8}));
  // A U+2581 in the text is not a space.
  EXPECT_EQ(tokenizer.encode("\xE2\x96\x81").value_or(Tokens{}),
            (Tokens{kFirstPiece + 14, 5 + 0xE2, 5 + 0x96, 5 + 0x81}));
}

TEST(Tokenizer, UserDefinedTokensAreAlwaysFoundAndControlTokensWhenAsked) {
  const Tokenizer tokenizer = make(small_vocabulary());
  EXPECT_EQ(pieces(tokenizer, "<|im_start|>a</s>"), (Pieces{" ", "<|im_start|>", "a", "<", "/", "s", ">"}));
  EXPECT_EQ(pieces(tokenizer, "<|im_start|>a</s>", {.parse_special = true}),
            (Pieces{" ", "<|im_start|>", "a", "</s>"}));
  EXPECT_EQ(pieces(tokenizer, "<|im_start|", {.parse_special = true}).size(), 12U);
}

TEST(Tokenizer, TheLongestSpecialTokenWins) {
  Metadata metadata = small_vocabulary();
  auto tokens = **metadata.strings("tokenizer.ggml.tokens");
  std::vector<std::int64_t> types(tokens.size(), 1);
  const auto ids = *metadata.i32s("tokenizer.ggml.token_type");
  std::ranges::copy(ids, types.begin());
  tokens[kFirstPiece] = "ab";
  tokens[kFirstPiece + 1] = "abcd";
  tokens[kFirstPiece + 2] = "abcdef";
  types[kFirstPiece] = types[kFirstPiece + 1] = 4;
  types[kFirstPiece + 2] = 3;
  metadata.set("tokenizer.ggml.tokens", tokens);
  metadata.set("tokenizer.ggml.token_type", types);
  const Tokenizer tokenizer = make(metadata);
  EXPECT_EQ(pieces(tokenizer, "abcababcdef"), (Pieces{" ", "ab", "c", "ab", "abcd", "e", "f"}));
  EXPECT_EQ(pieces(tokenizer, "abcdef", {.parse_special = true}), (Pieces{" ", "abcdef"}));
}

TEST(Tokenizer, NeverASecondBos) {
  const Tokenizer tokenizer = make(small_vocabulary());
  const Tokens once = *tokenizer.encode("world", {.add_bos = true});
  EXPECT_EQ(once, (Tokens{1, kFirstPiece + 9}));
  EXPECT_EQ(*tokenizer.encode("<s>world", {.add_bos = true, .parse_special = true}), once);
  EXPECT_EQ(*tokenizer.encode("<s>world", {.add_bos = false, .parse_special = true}), once);
  EXPECT_EQ(*tokenizer.encode("<s>", {.add_bos = true, .parse_special = true}), Tokens{1});
  EXPECT_EQ(*tokenizer.encode("", {.add_bos = true}), Tokens{1});
  // Without parse_special, the marker is plain text.
  EXPECT_EQ(tokenizer.encode("<s>", {.add_bos = true})->size(), 5U);
}

TEST(Tokenizer, SegmentsMergeAcrossTheirSeamsAndOnlyMarkupMakesSpecialTokens) {
  const Tokenizer tokenizer = make(small_vocabulary());
  const Segment parts[] = {{"", Markup::all},
                           {"he", Markup::all},
                           {"llo<|im_end|></s>", Markup::none},
                           {"</s><|im_end|>", Markup::user_defined},
                           {"</s>", Markup::all}};
  const Tokens tokens = *tokenizer.encode_segments(parts);
  EXPECT_EQ(tokens[1], kFirstPiece + 4);  // hello
  EXPECT_EQ(std::ranges::count(tokens, 4), 1);
  EXPECT_EQ(std::ranges::count(tokens, 2), 1);
  EXPECT_EQ(tokenizer.decode(tokens, {.control = true}).value_or("?"), "hello<|im_end|></s></s><|im_end|></s>");
}

TEST(Tokenizer, PiecesAndEnds) {
  const Tokenizer tokenizer = make(small_vocabulary());
  EXPECT_EQ(tokenizer.piece(2), "");
  EXPECT_EQ(tokenizer.piece(2, true), "</s>");
  EXPECT_EQ(tokenizer.piece(0), "\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer.piece(5 + 0xC3), "\xC3");
  EXPECT_EQ(tokenizer.piece(-1), "");
  EXPECT_EQ(tokenizer.piece(1 << 20), "");
  EXPECT_EQ(tokenizer.bos(), 1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_FALSE(tokenizer.eot().has_value());
  EXPECT_TRUE(tokenizer.is_end(2));
  EXPECT_TRUE(tokenizer.is_end(4));  // <|im_end|>, found by its name
  EXPECT_FALSE(tokenizer.is_end(3));
  EXPECT_FALSE(tokenizer.is_end(1));
  EXPECT_FALSE(tokenizer.decode(Tokens{1, 999999}).has_value());
  EXPECT_FALSE(tokenizer.decode(Tokens{-1}).has_value());
}

TEST(Tokenizer, FileDecidesOnBosAndEnds) {
  Metadata metadata = small_vocabulary();
  metadata.set("tokenizer.ggml.add_bos_token", false);
  metadata.set("tokenizer.ggml.eot_token_id", std::uint64_t{7});
  metadata.set("tokenizer.ggml.eom_token_id", std::uint64_t{8});
  const Tokenizer tokenizer = make(metadata);
  EXPECT_FALSE(tokenizer.adds_bos());
  EXPECT_EQ(tokenizer.eot(), 7);
  EXPECT_TRUE(tokenizer.is_end(7));
  EXPECT_TRUE(tokenizer.is_end(8));
  EXPECT_TRUE(make(small_vocabulary()).adds_bos());
}

// A direct implementation of SentencePiece's description.
Pieces merge_naively(const std::vector<std::string>& vocabulary, const std::string& text) {
  Pieces symbols;
  for (const char letter : text) symbols.emplace_back(1, letter);
  while (true) {
    auto best = vocabulary.size();
    std::size_t place = 0;
    for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
      const auto rank =
          static_cast<std::size_t>(std::ranges::find(vocabulary, symbols[at] + symbols[at + 1]) - vocabulary.begin());
      if (rank < best) {
        best = rank;
        place = at;
      }
    }
    if (best == vocabulary.size()) return symbols;
    symbols[place] += symbols[place + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(Tokenizer, AgreesWithNaiveMergingOnRandomVocabularies) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto word = [&](std::size_t most) {
      std::string letters;
      for (std::size_t length = 1 + random() % most; length > 0; --length) letters += "ab c"[random() % 4];
      return letters;
    };
    std::vector<std::string> vocabulary;
    for (int count = 0; count < 25; ++count) {
      std::string piece = word(5);
      // Half of the vocabularies have pieces that span words.
      if (seed % 2 == 0) std::erase_if(piece, [&](char& letter) { return letter == ' ' && &letter != piece.data(); });
      if (piece.size() > 1 && std::ranges::find(vocabulary, piece) == vocabulary.end()) vocabulary.push_back(piece);
    }
    const Tokenizer tokenizer = make(vocabulary_of(vocabulary));
    const std::string text = word(60);
    EXPECT_EQ(pieces(tokenizer, text), merge_naively(vocabulary, " " + text)) << "seed " << seed;
  }
}

TEST(Tokenizer, RandomTextsComeBackExactly) {
  const Tokenizer tokenizer = make(small_vocabulary());
  const std::vector<std::string> parts = {"hello",      " ",     "  ",       "\xE2\x96\x81",     "</s>",
                                          "<|im_end|>", "<|im_", "\xC3\xA9", "\xF0\x9F\x98\x80", std::string(1, '\0'),
                                          "\n",         "<0x41>"};
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (std::size_t count = random() % 12; count > 0; --count)
      text += random() % 4 == 0 ? std::string(1, static_cast<char>(random() % 128)) : parts[random() % parts.size()];
    const Tokens plain = *tokenizer.encode(text, {.add_bos = seed % 3 == 0});
    EXPECT_EQ(tokenizer.decode(plain).value_or("?"), text) << "seed " << seed;
    const Tokens parsed = *tokenizer.encode(text, {.add_bos = seed % 3 == 0, .parse_special = true});
    EXPECT_EQ(tokenizer.decode(parsed, {.control = true}).value_or("?"), text) << "seed " << seed;
  }
}

TEST(Tokenizer, WhatIsNotUtf8IsRefusedWithThePlace) {
  const Tokenizer tokenizer = make(small_vocabulary());
  for (const std::string_view text :
       {"hello\xFFz", "hello\xC3", "hello\xC3\x28", "hello\xED\xA0\x80", "hello\xC0\x80", "hello\xF4\x90\x80\x80"}) {
    const auto tokens = tokenizer.encode(text);
    ASSERT_FALSE(tokens.has_value());
    EXPECT_EQ(tokens.error().code, Code::invalid);
    EXPECT_NE(tokens.error().message.find("at offset 5"), std::string::npos) << tokens.error().message;
  }
  EXPECT_EQ(tokenizer.encode("\xFF").error().message,
            "the text is not UTF-8: byte 0xFF at offset 0 begins no character; convert the text to UTF-8");
}

TEST(Tokenizer, EosEndsAWholeTextWhereItIsAskedFor) {
  Metadata metadata = small_vocabulary();
  EXPECT_FALSE(make(metadata).adds_eos());
  metadata.set("tokenizer.ggml.add_eos_token", true);
  const Tokenizer tokenizer = make(metadata);
  EXPECT_TRUE(tokenizer.adds_eos());
  EXPECT_EQ(*tokenizer.encode("world", {.add_bos = true, .add_eos = true}), (Tokens{1, kFirstPiece + 9, 2}));
}

TEST(Tokenizer, LongRunsOfOneLetterAreNoTrap) {
  const Tokenizer tokenizer = make(small_vocabulary());
  const std::string letters(1 << 20, 'a');
  EXPECT_EQ(tokenizer.encode(letters)->size(), 1U + (1U << 18));
  const std::string angles(1 << 20, '<');
  EXPECT_EQ(tokenizer.encode(angles, {.parse_special = true})->size(), 1U + (1U << 20));
}

TEST(Tokenizer, WithoutBytesACharacterIsUnknownOnce) {
  Metadata metadata = small_vocabulary();
  metadata.set("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "a", "\xE2\x96\x81"});
  metadata.set("tokenizer.ggml.scores", std::vector<double>{0, 0, 0});
  metadata.set("tokenizer.ggml.token_type", std::vector<std::uint64_t>{2, 1, 1});
  metadata.set("tokenizer.ggml.bos_token_id", std::uint64_t{1});
  EXPECT_EQ(*make(metadata).encode("a\xE2\x82\xAC"), (Tokens{2, 1, 0}));
}

TEST(Tokenizer, AUnigramTokenThatIsImpossibleIsNotUsed) {
  Metadata metadata = vocabulary_of({"a", "b"});
  metadata.set("tokenizer.ggml.model", std::string("t5"));
  std::vector<float> scores(kFirstPiece + 2, -1.0F);
  scores[kFirstPiece] = -std::numeric_limits<float>::infinity();
  metadata.set("tokenizer.ggml.scores", scores);
  EXPECT_EQ(*make(metadata).encode("bab"), (Tokens{5 + ' ', kFirstPiece + 1, 5 + 'a', kFirstPiece + 1}));
}

TEST(Tokenizer, ByteLevelMergesStayWithinWords) {
  const Tokenizer tokenizer = make(byte_level_vocabulary_of({"ab", " a", " ab", "b a", "\xC3\xA9"}, "gpt-2"));
  EXPECT_EQ(pieces(tokenizer, "ab ab\xC3\xA9"), (Pieces{"ab", " ab", "\xC3\xA9"}));
  EXPECT_EQ(pieces(tokenizer, "b a"), (Pieces{"b", " a"}));
}

TEST(Tokenizer, EmptyAndRepeatedTokensAreTolerated) {
  const Tokenizer tokenizer = make(vocabulary_of({"", "a", "a", "aa", "aa", ""}));
  EXPECT_EQ(*tokenizer.encode("aaa"), (Tokens{5 + ' ', kFirstPiece + 3, kFirstPiece + 1}));
}

struct Broken {
  const char* why;
  Code code;
  const char* message;  // part of it
  void (*breaks)(Metadata&);
};

const Broken kBroken[] = {
    {"other kind", Code::unsupported, "\"bert\" is not supported; supported: \"llama\" (Sent",
     [](Metadata& m) { m.set("tokenizer.ggml.model", std::string("bert")); }},
    {"no tokens", Code::invalid, "tokenizer.ggml.tokens has 0 tokens",
     [](Metadata& m) { m.set("tokenizer.ggml.tokens", std::vector<std::string>{}); }},
    {"lengths differ", Code::invalid, "288 tokens, 1 scores and 288 token_types",
     [](Metadata& m) { m.set("tokenizer.ggml.scores", std::vector<double>{0}); }},
    {"score not a number", Code::invalid, "score of token 0 is not a number",
     [](Metadata& m) {
       m.set("tokenizer.ggml.scores", std::vector<double>(288, std::numeric_limits<double>::quiet_NaN()));
     }},
    {"type unknown", Code::invalid, "token 0 has type 7",
     [](Metadata& m) { m.set("tokenizer.ggml.token_type", std::vector<std::uint64_t>(288, 7)); }},
    {"byte misnamed", Code::invalid, "token 0 is of type byte",
     [](Metadata& m) { m.set("tokenizer.ggml.token_type", std::vector<std::uint64_t>(288, 6)); }},
    {"bytes missing", Code::invalid, "lacks 243 of 243 byte tokens",
     [](Metadata& m) { m.set("tokenizer.ggml.token_type", std::vector<std::uint64_t>(288, 1)); }},
    {"bos outside", Code::invalid, "tokenizer.ggml.bos_token_id is 288, outside the vocabulary of 288 tokens",
     [](Metadata& m) { m.set("tokenizer.ggml.bos_token_id", std::uint64_t{288}); }},
    {"flag of another type", Code::invalid, "tokenizer.ggml.add_bos_token",
     [](Metadata& m) { m.set("tokenizer.ggml.add_bos_token", std::string("yes")); }},
};

TEST(Tokenizer, MetadataAtOddsWithItselfIsAnError) {
  for (const Broken& broken : kBroken) {
    Metadata metadata = small_vocabulary();
    broken.breaks(metadata);
    const auto tokenizer = Tokenizer::create(metadata);
    ASSERT_FALSE(tokenizer.has_value()) << broken.why;
    EXPECT_EQ(tokenizer.error().code, broken.code) << broken.why;
    EXPECT_NE(tokenizer.error().message.find(broken.message), std::string::npos)
        << broken.why << ": " << tokenizer.error().message;
  }
}

TEST(Tokenizer, AskingForABosThatIsNotThereIsAnError) {
  Metadata metadata = small_vocabulary();
  metadata.set("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "a"});
  metadata.set("tokenizer.ggml.scores", std::vector<double>{0, 0});
  metadata.set("tokenizer.ggml.token_type", std::vector<std::uint64_t>{2, 1});
  Metadata without;
  for (const auto& [key, value] : metadata.all())
    if (key != "tokenizer.ggml.bos_token_id" && key != "tokenizer.ggml.eos_token_id") without.set(key, value);
  const Tokenizer tokenizer = make(without);
  EXPECT_FALSE(tokenizer.adds_bos());
  EXPECT_FALSE(tokenizer.encode("a", {.add_bos = true}).has_value());
  EXPECT_TRUE(tokenizer.encode("a").has_value());
}

}  // namespace
}  // namespace shunt::models
