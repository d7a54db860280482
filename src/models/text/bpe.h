// Byte-pair encoding: of all neighbours that may become one, the best pair merges first, the leftmost of equals.
//
// Without a merge table it is done as SentencePiece does it: pairs of characters that together are a token merge by its
// score, and what is no token in the end becomes bytes. With one, as GPT-2 does it: bytes merge by rank.
// O(n log n) in the length of the text, whatever the text. Borrows vocabulary and merges, which must outlive it;
// keeps its working memory from call to call, so one object serves one thread at a time.
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

  // Append the tokens of a text, or of a text within which nothing merges over the beginning of a word.
  // REQUIRES: text.size() < 2^31.
  void append_tokens(std::string_view text, std::vector<Token>& tokens);
  void append_word(std::string_view word, std::vector<Token>& tokens);

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;
  static constexpr Token kNone = -1;

  // A piece of the text; a list linked both ways, in which merging removes the right one of two.
  struct Symbol {
    std::uint32_t begin;
    std::uint32_t length;  // 0 once merged into its left neighbour
    std::uint32_t previous;
    std::uint32_t next;
    Token token;  // kNone where it is none
  };
  struct Merge {
    float score;         // or the negative rank
    std::uint32_t left;  // index of a symbol
    std::uint32_t right;
    std::uint32_t length;  // of both when found; another length by now means that one of them has changed
    Token token;           // that both become
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
