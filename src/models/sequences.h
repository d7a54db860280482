// The sequences of a session, and which pages of the cache each holds.
//
// Each page belongs to one sequence. Pages that were given back are taken again before others, so that a cache grows no
// further than it has to. A plain value; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shunt/model.h"

namespace shunt::models {

class Sequences {
 public:
  Sequences(std::uint32_t count, std::uint32_t pages_per_sequence)
      : pages_per_sequence_(pages_per_sequence), sequences_(count) {}

  [[nodiscard]] std::size_t count() const { return sequences_.size(); }
  [[nodiscard]] std::span<const Token> tokens(std::size_t index) const { return sequences_[index].tokens; }
  // Of its tokens, those that the cache knows: all, unless it was lost.
  [[nodiscard]] std::size_t computed(std::size_t index) const { return sequences_[index].computed; }

  // Takes the pages for tokens that are to follow.
  void reserve(std::span<const BatchToken> batch);
  // The cache knows these tokens, too.
  void add_computed(std::span<const BatchToken> batch);
  void append(std::span<const BatchToken> batch);
  // Forgets the tokens from `length` on.
  void truncate(std::size_t index, std::size_t length);
  // The cache is lost.
  void forget_cache();

  // The positions of tokens that follow those that the cache knows.
  [[nodiscard]] std::vector<std::int32_t> positions_of(std::span<const BatchToken> batch) const;
  // [sequences, pages_per_sequence], -1 where there is no page.
  [[nodiscard]] std::vector<std::int32_t> page_table() const;

 private:
  struct Sequence {
    std::vector<Token> tokens;
    std::size_t computed = 0;
    std::vector<std::int32_t> pages;
  };

  std::uint32_t pages_per_sequence_;
  std::vector<Sequence> sequences_;
  std::int32_t untouched_page_ = 0;  // it and all after it were never held
  std::vector<std::int32_t> free_pages_;
};

}  // namespace shunt::models
