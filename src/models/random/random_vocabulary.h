// A vocabulary for random models: <unk> <s> </s>, the 256 bytes, the two ChatML markers, then unique pieces that merge
// from shorter ones. Scores decrease as in a trained SentencePiece model.
#pragma once

#include <cstdint>

#include "models/gguf/metadata.h"

namespace shunt::models {

// The tokens that every vocabulary begins with.
inline constexpr std::uint32_t kFixedTokens = 3 + 256 + 2;

// Adds the tokenizer.* keys of a vocabulary of `size` tokens. REQUIRES: kFixedTokens <= size <= 200000.
void add_random_vocabulary(std::uint32_t size, Metadata& metadata);

}  // namespace shunt::models
