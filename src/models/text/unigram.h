// SentencePiece's unigram model: cuts a text into the tokens whose scores have the greatest sum.
//
// A character that no token covers is unknown, with a score below all others. If the vocabulary has all bytes, the
// character becomes bytes; otherwise a run of unknown characters becomes one unknown token. Text is first normalized by
// the model's character map. If the model asks for it, spaces are reduced to single ones, with none at either end. Does
// not own the vocabulary, which each call takes; immutable, so all calls are safe from many threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/charsmap.h"
#include "models/text/vocabulary.h"

namespace shunt::models {

class Unigram {
 public:
  // Errors: those of Charsmap::parse; invalid if a key is of another type.
  [[nodiscard]] static Result<Unigram> create(const Metadata& metadata, const Vocabulary& vocabulary);

  // Adds a leading space if `prefix`, unless the result is empty.
  [[nodiscard]] std::string normalize(std::string_view text, bool prefix) const;
  // Appends the tokens of a normalized text. `vocabulary` is the one given to create().
  void append_tokens(std::string_view text, const Vocabulary& vocabulary, std::vector<Token>& tokens) const;

 private:
  struct Node;
  void extend(std::string_view text, std::size_t at, const Vocabulary& vocabulary, std::vector<Node>& nodes) const;

  Charsmap charsmap_;
  bool single_spaces_ = false;
  double unknown_score_ = 0;
  std::vector<Token> by_bytes_;  // normal tokens, sorted by bytes
};

}  // namespace shunt::models
