// Any bytes as text, and any bytes as a vocabulary: encoding gives tokens that decode to exactly the text, or an error
// where it is not UTF-8, and the contents of a chat message never become special tokens.
//
// An input that begins with "V" carries a vocabulary: pieces ended by line breaks, up to an empty one; "!x" is
// user-defined, "?x" a control token, "@x" unused. The rest, or any other input, is the text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tests/models/small_vocabulary.h"
#include "models/chat.h"
#include "models/tokenizer.h"
#include "models/utf8.h"

namespace {

using namespace shunt;
using namespace shunt::models;

void require(bool holds) {
  if (!holds) std::abort();
}

Metadata vocabulary_from(std::string_view& input) {
  std::vector<std::string> pieces;
  std::vector<std::int64_t> types;
  while (!input.empty()) {
    std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(input.size(), line.size() + 1));
    if (line.empty()) break;
    const std::size_t type = std::string_view("?!@").find(line[0]);
    types.push_back(type == std::string_view::npos ? 1 : static_cast<std::int64_t>(3 + type));
    if (type != std::string_view::npos) line.remove_prefix(1);
    pieces.emplace_back(line);
  }
  Metadata metadata = vocabulary_of(pieces);
  std::vector<std::int64_t> all;
  for (const std::int32_t type : *metadata.i32s("tokenizer.ggml.token_type")) all.push_back(type);
  std::copy(types.begin(), types.end(), all.begin() + kFirstPiece);
  metadata.set("tokenizer.ggml.token_type", std::move(all));
  metadata.set("tokenizer.ggml.add_space_prefix", pieces.size() % 2 == 0);
  return metadata;
}

void check_text(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool add_bos : {false, true}) {
    const auto plain = tokenizer.encode(text, {.add_bos = add_bos, .parse_special = false});
    require(plain.has_value() && *tokenizer.decode(*plain) == text);
    const auto parsed = tokenizer.encode(text, {.add_bos = add_bos, .parse_special = true});
    require(parsed.has_value());
    // A BOS marker that begins the text becomes the BOS and has no text any more.
    const auto bare = tokenizer.encode(text, {.add_bos = false, .parse_special = true});
    const bool marked = !bare->empty() && bare->front() == *tokenizer.bos();
    const std::string_view rest = marked ? text.substr(tokenizer.piece(*tokenizer.bos(), true).size()) : text;
    require(*tokenizer.decode(*parsed, {.control = true}) == rest);
  }
}

// The text with U+FFFD for what is not UTF-8, which must be refused.
std::string as_utf8(const Tokenizer& tokenizer, std::string_view text) {
  require(tokenizer.encode(text).has_value() == is_utf8(text));
  Utf8Stream characters;
  const std::string begin = characters.push(text);
  return begin + characters.flush();
}

void check_chat(const Metadata& metadata, const Tokenizer& tokenizer, std::string_view text) {
  const auto chat = ChatTemplate::create(metadata, tokenizer);
  require(chat.has_value());
  const std::vector<Message> messages = {{.role = "user", .content = std::string(text)}};
  const std::vector<Message> none = {{.role = "user", .content = ""}};
  const auto tokens = chat->encode(messages, tokenizer, true);
  require(tokens.has_value());
  const auto specials = [&](std::span<const Token> list) {
    std::vector<Token> found;
    for (const Token token : list)
      if (tokenizer.special(tokenizer.piece(token, true)) == token) found.push_back(token);
    return found;
  };
  require(specials(*tokens) == specials(*chat->encode(none, tokenizer, true)));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  static const Metadata fixed_metadata = small_vocabulary();
  static const Tokenizer fixed = *Tokenizer::create(fixed_metadata);
  if (!text.starts_with('V')) {
    const std::string valid = as_utf8(fixed, text);
    check_text(fixed, valid);
    check_chat(fixed_metadata, fixed, valid);
    return 0;
  }
  text.remove_prefix(1);
  const Metadata metadata = vocabulary_from(text);
  const auto tokenizer = Tokenizer::create(metadata);
  require(tokenizer.has_value());
  const std::string valid = as_utf8(*tokenizer, text);
  check_text(*tokenizer, valid);
  check_chat(metadata, *tokenizer, valid);
  return 0;
}
