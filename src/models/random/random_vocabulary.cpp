#include "models/random/random_vocabulary.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "models/text/vocabulary.h"

namespace shunt::models {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, SentencePiece's space mark
constexpr std::string_view kConsonants = "bcdfghjklmnpqrstvwxz";
constexpr std::string_view kVowels = "aeiou";
constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

// All pieces in order: letters, then syllables, then words of two and three syllables, the latter two also with a space
// mark in front. Every piece but the letters joins two earlier ones.
class Pieces {
 public:
  explicit Pieces(std::size_t count) : count_(count) {
    add(std::string(kSpace));
    for (char letter = 'a'; letter <= 'z'; ++letter) add(std::string(1, letter));
    std::vector<std::string> syllables;
    for (const char consonant : kConsonants)
      for (const char vowel : kVowels) syllables.push_back({consonant, vowel});
    for (const std::string& syllable : syllables) add_both(syllable);
    std::vector<std::string> words = syllables;
    while (!full()) {
      std::vector<std::string> longer;
      for (const std::string& word : words)
        for (const std::string& syllable : syllables) {
          if (full()) return;
          add_both(word + syllable);
          longer.push_back(word + syllable);
        }
      words = std::move(longer);
    }
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return pieces_; }

 private:
  [[nodiscard]] bool full() const { return pieces_.size() == count_; }
  void add(std::string piece) {
    if (!full()) pieces_.push_back(std::move(piece));
  }
  void add_both(const std::string& piece) {
    add(piece);
    add(std::string(kSpace) + piece);
  }

  std::size_t count_;
  std::vector<std::string> pieces_;
};

}  // namespace

void add_random_vocabulary(std::uint32_t size, Metadata& metadata) {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types;
  const auto add_type = [&types](TokenType type) { types.push_back(static_cast<std::int32_t>(type)); };
  for (const TokenType type : {TokenType::unknown, TokenType::control, TokenType::control}) add_type(type);
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    add_type(TokenType::byte);
  }
  const auto start_mark = static_cast<std::uint32_t>(tokens.size());
  tokens.insert(tokens.end(), {"<|im_start|>", "<|im_end|>"});
  for (int mark = 0; mark < 2; ++mark) add_type(TokenType::user_defined);
  std::vector<float> scores(tokens.size(), 0.0F);
  const Pieces pieces(size - tokens.size());
  for (const std::string& piece : pieces.all()) {
    scores.push_back(-static_cast<float>(tokens.size() - kFixedTokens));
    add_type(TokenType::normal);
    tokens.push_back(piece);
  }
  metadata.set("tokenizer.ggml.model", std::string("llama"));
  metadata.set("tokenizer.ggml.pre", std::string("default"));
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.scores", std::move(scores));
  metadata.set("tokenizer.ggml.token_type", std::move(types));
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  metadata.set("tokenizer.ggml.eot_token_id", start_mark + 1);
  metadata.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  metadata.set("tokenizer.ggml.add_bos_token", true);
  metadata.set("tokenizer.ggml.add_space_prefix", true);
  metadata.set("tokenizer.chat_template", std::string(kChatTemplate));
}

}  // namespace shunt::models
