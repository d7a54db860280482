// Vocabularies built in code, small enough to reason about: <unk> <s> </s> <|im_start|> <|im_end|>, the 256 bytes (byte
// b is token 5 + b), then the given pieces. Scores fall as in a trained SentencePiece model; the byte-level kind has
// merges.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/gguf/metadata.h"

namespace shunt::models {

inline constexpr std::int32_t kFirstPiece = 5 + 256;
inline constexpr std::string_view kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}";

// Spells "\u2581" in a piece as a space.
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

// `types_of`: the types of the pieces; all normal if empty.
inline Metadata vocabulary_of(const std::vector<std::string>& pieces, const std::vector<std::int64_t>& types_of = {}) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::int64_t> types = {2, 3, 3, 4, 4};
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    tokens.push_back(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">");
    types.push_back(6);
  }
  std::vector<double> scores(tokens.size(), 0.0);
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    tokens.push_back(with_marks(pieces[index]));
    types.push_back(types_of.empty() ? 1 : types_of[index]);
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

// Spells bytes as byte-level vocabularies do: Latin-1 if visible, otherwise letters from U+0100 on.
inline std::string byte_letters(std::string_view bytes) {
  const auto visible = [](unsigned byte) {
    return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD && byte <= 0xFF);
  };
  std::string letters;
  for (const char each : bytes) {
    const unsigned byte = static_cast<std::uint8_t>(each);
    unsigned code = byte;
    if (!visible(byte)) {
      code = 0x100;
      for (unsigned before = 0; before < byte; ++before) code += visible(before) ? 0U : 1U;
    }
    if (code < 0x80) {
      letters += static_cast<char>(code);
    } else {
      letters += static_cast<char>(0xC0 | code >> 6);
      letters += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return letters;
}

// The same tokens as a byte-level vocabulary. Each way to split a normal piece into two earlier tokens is a merge, in
// the order of the pieces. `pre`: tokenizer.ggml.pre.
inline Metadata byte_level_vocabulary_of(const std::vector<std::string>& pieces, std::string pre,
                                         const std::vector<std::int64_t>& types_of = {}) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::int64_t> types = {2, 3, 3, 4, 4};
  std::set<std::string_view> known;
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string_view one = std::string_view(bytes).substr(byte, 1);
    tokens.push_back(byte_letters(one));
    types.push_back(1);
    known.insert(one);
  }
  std::vector<std::string> merges;
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    const std::string_view piece = pieces[index];
    types.push_back(types_of.empty() ? 1 : types_of[index]);
    tokens.push_back(types.back() == 1 ? byte_letters(piece) : std::string(piece));
    if (types.back() != 1 || piece.empty()) continue;
    for (std::size_t at = 1; at < piece.size(); ++at)
      if (known.contains(piece.substr(0, at)) && known.contains(piece.substr(at)))
        merges.push_back(byte_letters(piece.substr(0, at)) + " " + byte_letters(piece.substr(at)));
    known.insert(piece);
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", std::move(pre));
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.token_type", std::move(types));
  metadata.set("tokenizer.ggml.merges", std::move(merges));
  metadata.set("tokenizer.ggml.bos_token_id", std::uint64_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint64_t{2});
  metadata.set("tokenizer.chat_template", std::string(kChatMl));
  return metadata;
}

inline std::vector<std::string> small_pieces() {
  return {"he", "hel", "ll", "hell", "hello", " w", "or", " wor", "ld", " world", "aa", "aaaa", "  ",      "\n",
          " ",  "a",   "b",  "d",    "e",     "h",  "l",  "o",    "r",  "s",      "u",  "w",    "\xC3\xA9"};
}

inline Metadata small_vocabulary() { return vocabulary_of(small_pieces()); }

}  // namespace shunt::models
