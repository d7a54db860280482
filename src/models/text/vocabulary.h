// The checked tokens of a model file: the bytes, type and score of each.
//
// Format: the tokenizer.ggml.* keys of the GGUF specification. Pieces are stored as the bytes they represent. U+2581,
// SentencePiece's space mark, becomes a space, <0x41> the byte A, and byte letters of byte-level vocabularies those
// bytes. Looking up text therefore never confuses a space with a U+2581 in the text itself. Owns everything; immutable
// after creation, so all calls are safe from many threads.
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
  space_marks,   // as in SentencePiece: U+2581 is a space
  byte_letters,  // as in GPT-2: one letter per byte; control and user-defined tokens as they are
};

class Vocabulary {
 public:
  // Byte letters need no scores (all 0 then) and no types (all normal then). Tolerates empty tokens (never found in
  // text) and duplicates (text gives the lowest id). Errors: invalid if arrays differ in length, a type is unknown or
  // a score is not a number; if a byte token is not <0xHH> or a special id is outside the vocabulary; if some text
  // could not be encoded, because bytes of valid UTF-8 are missing and there is no unknown token.
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

  // Returns the normal token of exactly these bytes.
  [[nodiscard]] std::optional<Token> find_normal(std::string_view bytes) const;
  [[nodiscard]] std::optional<Token> byte_token(std::uint8_t byte) const;
  // Appends the tokens of these bytes and returns true. Appends nothing if a byte has no token; if the bytes are part
  // of valid UTF-8, there is then an unknown token.
  [[nodiscard]] bool append_bytes(std::string_view bytes, std::vector<Token>& tokens) const;
  [[nodiscard]] std::optional<Token> unknown() const { return unknown_; }

  // Returns the bytes that byte letters spell, or `letters` itself if a character is no such letter.
  [[nodiscard]] static std::string bytes_spelled(std::string_view letters);

  // Returns the control or user-defined token of exactly this text.
  [[nodiscard]] std::optional<Token> find_special(std::string_view text) const;
  // Returns the longest user-defined token (or control token, if `control`) that `text` begins with.
  [[nodiscard]] std::optional<Token> match_special(std::string_view text, bool control) const;
  // False if no special token begins with this byte.
  [[nodiscard]] bool may_begin_special(char byte) const { return begins_special_[static_cast<std::uint8_t>(byte)]; }

  // True if in normal tokens a space follows only spaces, so that nothing merges across the start of a word.
  [[nodiscard]] bool words_stay_apart() const { return words_stay_apart_; }

 private:
  explicit Vocabulary(Spelling spelling) : spelling_(spelling) {}
  [[nodiscard]] std::string spelled_out(std::string_view text, TokenType type) const;
  [[nodiscard]] Status add(std::string_view text, TokenType type, float score);
  void index_specials();
  [[nodiscard]] Status find_unknown(const Metadata& metadata);

  Spelling spelling_;
  std::vector<char> bytes_;          // of all tokens; a vector, so that views into it survive a move
  std::vector<std::uint64_t> ends_;  // the end of each token in bytes_
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  std::unordered_map<std::string_view, Token> normal_;
  std::vector<Token> specials_;  // sorted by bytes, then id; one of each text and type
  std::array<bool, 256> begins_special_{};
  std::array<Token, 256> byte_tokens_{};
  std::optional<Token> unknown_;
  bool words_stay_apart_ = true;
};

// Returns the token that metadata names under `key`, or nullopt if the key is missing. Errors: invalid if it is outside
// a vocabulary of `token_count`.
[[nodiscard]] Result<std::optional<Token>> token_of(const Metadata& metadata, std::string_view key,
                                                    std::size_t token_count);

}  // namespace shunt::models
