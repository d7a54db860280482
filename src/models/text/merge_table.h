// The merges of a byte-level vocabulary, by rank: which pairs of neighbouring tokens merge, and which first.
//
// Format: tokenizer.ggml.merges of the GGUF specification, "LEFT RIGHT" in byte letters, best first. Owns everything;
// immutable after creation, so all calls are safe from many threads.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "models/text/vocabulary.h"

namespace shunt::models {

class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;  // 0 is the best
    Token token;         // the result of the merge
  };

  // Errors: invalid if a merge is not a pair, or names a token that the vocabulary lacks.
  [[nodiscard]] static Result<MergeTable> create(const Metadata& metadata, const Vocabulary& vocabulary);

  [[nodiscard]] std::optional<Merge> find(Token left, Token right) const {
    const auto place = merges_.find(key(left, right));
    return place == merges_.end() ? std::nullopt : std::optional(place->second);
  }

 private:
  MergeTable() = default;
  static std::uint64_t key(Token left, Token right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U | static_cast<std::uint32_t>(right);
  }

  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace shunt::models
