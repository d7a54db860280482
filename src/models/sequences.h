// The sequences of a session and the cache pages that each holds.
//
// Each page belongs to one sequence. Freed pages are reused before untouched ones, so the cache grows no further than
// it must. A plain value; one thread at a time.
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
  // How many of the sequence's tokens are in the cache: all, unless the cache was lost.
  [[nodiscard]] std::size_t computed(std::size_t index) const { return sequences_[index].computed; }

  // Allocates the pages for tokens that are about to follow.
  void reserve(std::span<const BatchToken> batch);
  // Records that the cache now holds these tokens.
  void add_computed(std::span<const BatchToken> batch);
  void append(std::span<const BatchToken> batch);
  // Drops the tokens from `length` on.
  void truncate(std::size_t index, std::size_t length);
  // Records that the cache is lost.
  void forget_cache();

  // Returns the positions of the batch's tokens, which follow the cached ones.
  [[nodiscard]] std::vector<std::int32_t> positions_of(std::span<const BatchToken> batch) const;
  // A range of pages.
  struct Pages {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  // Returns the least range with all pages that hold cached tokens, from the first page on.
  [[nodiscard]] Pages cached_pages() const;
  // Returns the least range with all pages that the batch's tokens go to, whose positions are given. Other pages in it
  // are cached or unused.
  [[nodiscard]] Pages pages_of_batch(std::span<const BatchToken> batch, std::span<const std::int32_t> positions) const;
  // [sequences, pages_per_sequence]; -1 means no page.
  [[nodiscard]] std::vector<std::int32_t> page_table() const;

 private:
  struct Sequence {
    std::vector<Token> tokens;
    std::size_t computed = 0;
    std::vector<std::int32_t> pages;
  };

  std::uint32_t pages_per_sequence_;
  std::vector<Sequence> sequences_;
  std::int32_t untouched_page_ = 0;  // this page and all after it were never used
  std::vector<std::int32_t> free_pages_;
};

}  // namespace shunt::models
