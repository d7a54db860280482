// Byte-pair encoding: of all neighbours that can merge, the best pair merges first, and the leftmost of equals.
//
// Without a merge table it works as in SentencePiece: two neighbours merge if they form a token, by its score. What is
// not a token in the end becomes bytes. With a merge table it works as in GPT-2: bytes merge by rank. Takes O(n log n)
// for any text of n bytes. Borrows the vocabulary and the merges, which must outlive it. Keeps its scratch memory
// between calls, so one object serves one thread at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/text/merge_table.h"
#include "models/text/vocabulary.h"

namespace shunt::models {

class BpeMerger {
 public:
  explicit BpeMerger(const Vocabulary& vocabulary, const MergeTable* merges = nullptr)
      : vocabulary_(vocabulary), merge_table_(merges) {}

  // Append the tokens of a text. append_word() is for text in which nothing merges across the start of a word.
  // REQUIRES: text.size() < 2^31.
  void append_tokens(std::string_view text, std::vector<Token>& tokens);
  void append_word(std::string_view word, std::vector<Token>& tokens);

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;
  static constexpr Token kNone = -1;

  // A piece of the text, in a doubly linked list; merging removes the right piece of two.
  struct Symbol {
    std::uint32_t begin;
    std::uint32_t length;  // 0 once merged into its left neighbour
    std::uint32_t previous;
    std::uint32_t next;
    Token token;  // kNone if it is not a token
  };
  struct Merge {
    float score;         // or the negated rank
    std::uint32_t left;  // index of a symbol
    std::uint32_t right;
    std::uint32_t length;  // of both when found; if it differs now, one of them has changed
    Token token;           // the result of the merge
  };

  void split_characters(std::string_view word);
  void consider(std::string_view word, std::uint32_t left, std::uint32_t right);
  void merge_all(std::string_view word);
  void append_symbol(const Symbol& symbol, std::string_view word, std::vector<Token>& tokens) const;

  const Vocabulary& vocabulary_;
  const MergeTable* merge_table_;
  std::vector<Symbol> symbols_;
  std::vector<Merge> merges_;  // a heap, best first
};

}  // namespace shunt::models
