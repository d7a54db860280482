// The normalization in a SentencePiece model: which characters, or runs of characters, to replace with which text.
//
// Format: tokenizer.ggml.precompiled_charsmap is SentencePiece's precompiled_charsmap, little-endian. It holds the size
// in bytes of a double array (darts-clone), the array, and the replacement texts, each ended by a zero byte. Owns
// everything; immutable after creation, so all calls are safe from many threads.
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
  // Parses a map; no bytes give the map that changes nothing. Errors: invalid if the sizes are inconsistent.
  [[nodiscard]] static Result<Charsmap> parse(std::span<const std::uint8_t> bytes);

  // The replacement for the beginning of a text, and the length of what it replaces. A character that the map does not
  // know is kept.
  struct Replacement {
    std::string_view text;
    std::size_t length;  // in bytes
  };
  // REQUIRES: !text.empty().
  [[nodiscard]] Replacement first(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace shunt::models
