// SentencePiece's unigram model: of all ways to cut a text into tokens, the one whose scores have the greatest sum.
//
// A character that no token covers is unknown, at a score below all others; where the vocabulary has all bytes it
// becomes those, else a run of unknown characters becomes one unknown token. Text is normalised before: by the
// model's map of characters, and, where it asks for it, to single spaces with none at either end.
// Owns what it keeps, but not the vocabulary, which each call names; immutable, so all calls are safe from many
// threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/charsmap.h"
#include "models/text/vocabulary.h"

namespace shunt::models {

class Unigram {
 public:
  // Errors: those of Charsmap::parse, and invalid where a key is of another type.
  [[nodiscard]] static Result<Unigram> create(const Metadata& metadata, const Vocabulary& vocabulary);

  // With a space before it if `prefix`, unless nothing is left of the text.
  [[nodiscard]] std::string normalize(std::string_view text, bool prefix) const;
  // Appends the tokens of a normalised text. `vocabulary` is the one that create() was given.
  void append_tokens(std::string_view text, const Vocabulary& vocabulary, std::vector<Token>& tokens) const;

 private:
  struct Node;
  void extend(std::string_view text, std::size_t at, const Vocabulary& vocabulary, std::vector<Node>& nodes) const;

  Charsmap charsmap_;
  bool single_spaces_ = false;
  double unknown_score_ = 0;
  std::vector<Token> by_bytes_;  // normal tokens
};

}  // namespace shunt::models
