// The tokens of a model file, checked: what bytes each stands for, its type and its score.
//
// Format: the tokenizer.ggml.* keys of the GGUF specification. Pieces are kept as the bytes that they
// stand for: U+2581, which SentencePiece writes for a space, is a space here, <0x41> is the byte A, and the letters
// that byte-level vocabularies write for bytes are those bytes.
// Looking up text can therefore never confuse a space with a U+2581 of the text itself.
// Owns everything; immutable after creation, so all calls are safe from many threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/gguf/metadata.h"
#include "shunt/model.h"

namespace shunt::models {

// The values of tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// How the pieces of a vocabulary are spelled.
enum class Spelling : std::uint8_t {
  space_marks,   // as SentencePiece does it: U+2581 is a space
  byte_letters,  // as GPT-2 does it: one letter for each byte; control and user-defined tokens as they are
};

class Vocabulary {
 public:
  // Byte letters need no scores (all 0 then) and no types (all normal then).
  // Tolerated: empty tokens (never found in text) and duplicates (text gives the lowest id).
  // Errors: invalid where arrays differ in length, a type is unknown, a score is not a number, a byte token is not
  // <0xHH>, a special id is outside the vocabulary, or text could not always be encoded (bytes that valid UTF-8 can
  // have are missing, no unknown).
  [[nodiscard]] static Result<Vocabulary> create(const Metadata& metadata, Spelling spelling);

  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  ~Vocabulary() = default;

  [[nodiscard]] std::size_t size() const { return types_.size(); }
  [[nodiscard]] bool contains(Token token) const {
    return token >= 0 && static_cast<std::size_t>(token) < types_.size();
  }

  // REQUIRES for the three: contains(token). The bytes of a control token are its name, as in "<s>"; those of the
  // unknown token are U+FFFD.
  [[nodiscard]] std::string_view bytes(Token token) const;
  [[nodiscard]] TokenType type(Token token) const { return types_[static_cast<std::size_t>(token)]; }
  [[nodiscard]] float score(Token token) const { return scores_[static_cast<std::size_t>(token)]; }

  // The normal token of exactly these bytes.
  [[nodiscard]] std::optional<Token> find_normal(std::string_view bytes) const;
  [[nodiscard]] std::optional<Token> byte_token(std::uint8_t byte) const;
  // Appends the tokens of these bytes and returns true, or nothing where one of them has none. Then there is an
  // unknown token, if the bytes are part of valid UTF-8.
  [[nodiscard]] bool append_bytes(std::string_view bytes, std::vector<Token>& tokens) const;
  [[nodiscard]] std::optional<Token> unknown() const { return unknown_; }

  // What byte letters spell; where a character is no such letter, `letters` itself.
  [[nodiscard]] static std::string bytes_spelled(std::string_view letters);

  // The control or user-defined token of exactly this text.
  [[nodiscard]] std::optional<Token> find_special(std::string_view text) const;
  // The longest user-defined token (or control token, where those count) that `text` begins with.
  [[nodiscard]] std::optional<Token> match_special(std::string_view text, bool control) const;
  // False where no special token begins with this byte.
  [[nodiscard]] bool may_begin_special(char byte) const { return begins_special_[static_cast<std::uint8_t>(byte)]; }

  // No normal token has a space after anything but a space, so that nothing merges over the beginning of a word.
  [[nodiscard]] bool words_stay_apart() const { return words_stay_apart_; }

 private:
  explicit Vocabulary(Spelling spelling) : spelling_(spelling) {}
  [[nodiscard]] std::string spelled_out(std::string_view text, TokenType type) const;
  [[nodiscard]] Status add(std::string_view text, TokenType type, float score);
  void index_specials();
  [[nodiscard]] Status find_unknown(const Metadata& metadata);

  Spelling spelling_;
  std::vector<char> bytes_;          // of all tokens; a vector, since views into it must survive a move
  std::vector<std::uint64_t> ends_;  // of each token in bytes_
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  std::unordered_map<std::string_view, Token> normal_;
  std::vector<Token> specials_;  // by bytes, then id; one of each text and type
  std::array<bool, 256> begins_special_{};
  std::array<Token, 256> byte_tokens_{};
  std::optional<Token> unknown_;
  bool words_stay_apart_ = true;
};

// The token that metadata names under `key`; nothing where the key is missing.
// Errors: invalid where it is outside a vocabulary of `token_count`.
[[nodiscard]] Result<std::optional<Token>> token_of(const Metadata& metadata, std::string_view key,
                                                    std::size_t token_count);

}  // namespace shunt::models
