// The normalisation that a SentencePiece model carries: which characters, or runs of them, stand for which others.
//
// Format: tokenizer.ggml.precompiled_charsmap is what SentencePiece calls precompiled_charsmap: the size in bytes of a
// double array (darts-clone), the array, and the texts to put in place, each ended by a zero byte; little-endian.
// Owns everything; immutable after creation, so all calls are safe from many threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/status.h"

namespace shunt::models {

class Charsmap {
 public:
  // The map that changes nothing.
  Charsmap() = default;
  // No bytes: the map that changes nothing. Errors: invalid where sizes do not fit together.
  [[nodiscard]] static Result<Charsmap> parse(std::span<const std::uint8_t> bytes);

  // What the beginning of a text stands for, and how much of the text that is. A character that the map does not
  // know stands for itself.
  struct Step {
    std::string_view text;
    std::size_t length;  // in bytes
  };
  // REQUIRES: !text.empty().
  [[nodiscard]] Step first(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace shunt::models
