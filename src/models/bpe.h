// Byte-pair encoding as SentencePiece does it: of all neighbours that together are a token, the pair with the
// best score merges first, the leftmost of equals; what is no token in the end becomes bytes.
//
// O(n log n) in the length of the text, whatever the text. Borrows the vocabulary, which must outlive it;
// keeps its working memory from call to call, so one object serves one thread at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/vocabulary.h"

namespace shunt::models {

class BpeMerger {
 public:
  explicit BpeMerger(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // Appends the tokens of `text`. REQUIRES: text.size() < 2^31.
  void append_tokens(std::string_view text, std::vector<Token>& tokens);

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;

  // A piece of the text; a list linked both ways, in which merging removes the right one of two.
  struct Symbol {
    std::uint32_t begin;
    std::uint32_t length;  // 0 once merged into its left neighbour
    std::uint32_t previous;
    std::uint32_t next;
  };
  struct Merge {
    float score;
    std::uint32_t left;  // index of a symbol
    std::uint32_t right;
    std::uint32_t length;  // of both when found; another length by now means that one of them has changed
  };

  void append_word(std::string_view word, std::vector<Token>& tokens);
  void split_characters(std::string_view word);
  void consider(std::string_view word, std::uint32_t left, std::uint32_t right);
  void merge_all(std::string_view word);
  void append_symbol(std::string_view bytes, std::vector<Token>& tokens) const;

  const Vocabulary& vocabulary_;
  std::vector<Symbol> symbols_;
  std::vector<Merge> merges_;  // a heap, best first
};

}  // namespace shunt::models
