// A vocabulary built in code, small enough to reason about: <unk> <s> </s> <|im_start|> <|im_end|>, the 256 bytes
// (byte b is token 5 + b), then the given pieces with falling scores, as a trained SentencePiece model has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/metadata.h"

namespace shunt::models {

inline constexpr std::int32_t kFirstPiece = 5 + 256;
inline constexpr std::string_view kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}";

// "\u2581" in a piece is written as a space here.
inline std::string with_marks(std::string_view piece) {
  std::string marked;
  for (const char byte : piece) {
    if (byte == ' ')
      marked += "\xE2\x96\x81";
    else
      marked += byte;
  }
  return marked;
}

inline Metadata vocabulary_of(const std::vector<std::string>& pieces) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::int64_t> types = {2, 3, 3, 4, 4};
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    tokens.push_back(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">");
    types.push_back(6);
  }
  std::vector<double> scores(tokens.size(), 0.0);
  for (const std::string& piece : pieces) {
    tokens.push_back(with_marks(piece));
    types.push_back(1);
    scores.push_back(-static_cast<double>(scores.size()));
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("llama"));
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.scores", std::move(scores));
  metadata.set("tokenizer.ggml.token_type", std::move(types));
  metadata.set("tokenizer.ggml.bos_token_id", std::uint64_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint64_t{2});
  metadata.set("tokenizer.chat_template", std::string(kChatMl));
  return metadata;
}

inline Metadata small_vocabulary() {
  return vocabulary_of({"he",     "hel", "ll",   "hell", "hello", " w", "or", " wor", "ld",
                        " world", "aa",  "aaaa", "  ",   "\n",    " ",  "a",  "b",    "d",
                        "e",      "h",   "l",    "o",    "r",     "s",  "u",  "w",    "\xC3\xA9"});
}

}  // namespace shunt::models
