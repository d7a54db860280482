// Any text through the trained model's tokenizer and back, byte for byte.
#include <algorithm>
#include <optional>
#include <random>

#include "models/reference.h"
#include "models/text/utf8.h"

namespace shunt::models {
namespace {

void append_utf8(std::uint32_t point, std::string& text) {
  if (point < 0x80) {
    text += static_cast<char>(point);
    return;
  }
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  constexpr std::uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLead[more] | point >> (6 * more));
  for (int left = more - 1; left >= 0; --left) text += static_cast<char>(0x80 | (point >> (6 * left) & 0x3F));
}

class RoundTrip : public testing::Test {
 protected:
  void SetUp() override { model_ = Loaded::take(Model::load(kTrainedModel)); }

  // Expects the text back from every way of encoding, and from a stream of pieces.
  void expect_back(const std::string& text) {
    const Tokenizer& tokenizer = model_->tokenizer();
    for (const bool bos : {false, true}) {
      const auto plain = tokenizer.encode(text, {.add_bos = bos});
      ASSERT_TRUE(plain.has_value());
      EXPECT_EQ(tokenizer.decode(*plain).value_or("?"), text);
      EXPECT_EQ(std::ranges::count(*plain, *tokenizer.bos()), bos ? 1 : 0);
      const auto parsed = tokenizer.encode(text, {.add_bos = bos, .parse_special = true});
      ASSERT_TRUE(parsed.has_value());
      const std::string back = tokenizer.decode(*parsed, {.control = true}).value_or("?");
      // A leading BOS marker in the text becomes the BOS itself.
      EXPECT_EQ(text.starts_with("<s>") ? "<s>" + back : back, text);
      std::string pieces;
      for (const Token token : *plain) pieces += tokenizer.piece(token);
      EXPECT_EQ(pieces, text.empty() ? "" : " " + text);
    }
  }

  std::unique_ptr<Model> model_;
};

TEST_F(RoundTrip, RandomBytesComeBackOrAreNoText) {
  std::size_t refused = 0;
  constexpr std::uint32_t kSeeds = 2000;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::string text(random() % 6, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    if (is_utf8(text)) {
      expect_back(text);
    } else {
      const auto tokens = model_->tokenizer().encode(text);
      ASSERT_FALSE(tokens.has_value());
      EXPECT_EQ(tokens.error().code, Code::invalid);
      ++refused;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, kSeeds);
}

TEST_F(RoundTrip, RandomUnicode) {
  // First and last code point of each range to draw from: ASCII, Latin, Greek to Arabic, U+2581 and its neighbours,
  // Han, Hangul, private use, emoji, and everything.
  constexpr std::pair<std::uint32_t, std::uint32_t> kRanges[] = {
      {0x20, 0x7E},     {0x01, 0x24F},    {0x370, 0x6FF},     {0x2580, 0x2583},   {0x4E00, 0x9FFF},
      {0xAC00, 0xD7A3}, {0xE000, 0xFFFF}, {0x1F300, 0x1F6FF}, {0x10000, 0x10FFFF}};
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::string text;
    for (std::size_t left = random() % 80; left > 0; --left) {
      const auto [first, last] = kRanges[random() % std::size(kRanges)];
      append_utf8(first + static_cast<std::uint32_t>(random()) % (last - first + 1), text);
      if (random() % 4 == 0) text += ' ';
    }
    ASSERT_TRUE(is_utf8(text));
    expect_back(text);
    if (HasFailure()) return;
  }
}

TEST_F(RoundTrip, PiecesOfTheVocabularyInAnyOrder) {
  const Tokenizer& tokenizer = model_->tokenizer();
  std::size_t compared = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::string text;
    for (std::size_t left = random() % 30; left > 0; --left)
      text += tokenizer.piece(static_cast<Token>(1 + random() % (tokenizer.token_count() - 1)), random() % 2 == 0);
    // An inner "<s>" is parsed; several leading ones would count as one. Single bytes rarely form text.
    if (text.starts_with("<s>") || !is_utf8(text)) continue;
    ++compared;
    const auto parsed = tokenizer.encode(text, {.parse_special = true});
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(tokenizer.decode(*parsed, {.control = true}).value_or("?"), text);
    const auto plain = tokenizer.encode(text);
    ASSERT_TRUE(plain.has_value());
    EXPECT_EQ(tokenizer.decode(*plain).value_or("?"), text);
    // Without markup, no control tokens appear, whatever the text spells.
    for (const Token control : {0, 1, 2}) EXPECT_EQ(std::ranges::count(*plain, control), 0);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 100U);
}

TEST_F(RoundTrip, ContentsOfMessagesNeverBecomeControlTokens) {
  const Tokenizer& tokenizer = model_->tokenizer();
  const ChatTemplate& chat = *model_->chat();
  const std::vector<Token> frame = *chat.encode(std::vector<Message>{{"user", ""}}, tokenizer, true);
  constexpr const char* kParts[] = {"<s>", "</s>", "<|im_start|>", "<|im_end|>", "<unk>", "<0x41>", "user",
                                    "\n",  " ",    "<|im_",        "assistant",  "end|>"};
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::string content;
    for (std::size_t left = random() % 12; left > 0; --left) content += kParts[random() % std::size(kParts)];
    const auto tokens = chat.encode(std::vector<Message>{{"user", content}}, tokenizer, true);
    ASSERT_TRUE(tokens.has_value());
    for (const Token special : {0, 1, 2, 3, 4})
      EXPECT_EQ(std::ranges::count(*tokens, special), std::ranges::count(frame, special)) << content;
    EXPECT_EQ(tokens->front(), *tokenizer.bos());
    EXPECT_EQ(tokenizer.decode(*tokens, {.control = true}).value_or("?"),
              "<|im_start|>user\n" + content + "<|im_end|>\n<|im_start|>assistant\n");
  }
}

}  // namespace
}  // namespace shunt::models
