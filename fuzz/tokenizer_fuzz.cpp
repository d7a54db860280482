// Any bytes as text, and any bytes as a vocabulary, for tokenizers of every kind: encoding gives tokens of the
// vocabulary that decode to exactly the text where the kind promises that, or an error where it is not UTF-8, and the
// contents of a chat message never become special tokens.
//
// An input may begin with a byte below 0x20: its low four bits choose a row of kKinds, its fifth bit has the text
// repeated, so that time which grows with the square of a length shows. Without one the kind is the first. Then "V"
// begins a vocabulary: for kinds with a map of characters a byte and eight times as many bytes of map; pieces ended by
// line breaks, up to an empty one; "!x" is user-defined, "?x" a control token, "@x" unused. The rest is the text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tests/models/text/small_vocabulary.h"
#include "models/text/chat.h"
#include "models/text/tokenizer.h"
#include "models/text/utf8.h"

namespace {

using namespace shunt;
using namespace shunt::models;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Kind {
  std::string_view model;
  std::string_view pre_names = {};  // of a byte-level vocabulary
  bool bytes = true;                // the vocabulary has a token for each byte
  bool normalizes = false;          // single spaces, and a map of characters where the input has one

  [[nodiscard]] bool byte_level() const { return model == "gpt2"; }
  [[nodiscard]] bool unigram() const { return model == "t5"; }
};

constexpr Kind kKinds[] = {
    {.model = "llama"},
#define SHUNT_PRE_TOKENIZER(names, whole_words, adds_bos, ...) {.model = "gpt2", .pre_names = names},
#include "models/text/pre_tokenizers.def"
    {.model = "t5"},
    {.model = "t5", .bytes = false},
    {.model = "t5", .normalizes = true},
};
static_assert(std::size(kKinds) <= 16);

struct Pieces {
  std::vector<std::string> texts;
  std::vector<std::int64_t> types;  // empty: all normal
  std::vector<std::uint8_t> charsmap = {};
};

Metadata metadata_of(const Kind& kind, const Pieces& pieces) {
  const std::string pre(kind.pre_names.substr(0, kind.pre_names.find(' ')));
  Metadata metadata = kind.byte_level() ? byte_level_vocabulary_of(pieces.texts, pre, pieces.types)
                                        : vocabulary_of(pieces.texts, pieces.types);
  metadata.set("tokenizer.ggml.model", std::string(kind.model));
  if (!kind.bytes) {
    std::vector<std::int32_t> types = *metadata.i32s("tokenizer.ggml.token_type");
    std::ranges::replace(types, 6, 5);
    metadata.set("tokenizer.ggml.token_type", std::move(types));
  }
  if (kind.normalizes) {
    metadata.set("tokenizer.ggml.remove_extra_whitespaces", true);
    metadata.set("tokenizer.ggml.precompiled_charsmap", pieces.charsmap);
  }
  return metadata;
}

std::string_view take(std::string_view& input, std::size_t bytes) {
  const std::string_view taken = input.substr(0, bytes);
  input.remove_prefix(taken.size());
  return taken;
}

Pieces pieces_from(std::string_view& input, const Kind& kind) {
  Pieces pieces;
  if (kind.normalizes && !input.empty()) {
    const auto size = static_cast<std::uint8_t>(take(input, 1)[0]);
    const std::string_view map = take(input, std::size_t{8} * size);
    pieces.charsmap.assign(map.begin(), map.end());
  }
  while (!input.empty()) {
    std::string_view line = take(input, input.find('\n'));
    take(input, 1);
    if (line.empty()) break;
    const std::size_t type = std::string_view("?!@").find(line[0]);
    if (type != std::string_view::npos) line.remove_prefix(1);
    pieces.types.push_back(type == std::string_view::npos ? 1 : static_cast<std::int64_t>(3 + type));
    pieces.texts.emplace_back(line);
  }
  return pieces;
}

bool is_special(const Tokenizer& tokenizer, Token token) {
  return tokenizer.special(tokenizer.piece(token, true)) == token;
}

// Where unigram models put the space before a text: behind special tokens that begin it. Of two tokens of one text, of
// which one is special, `of_text` takes both for it, but not the space that was put there.
std::string with_prefix(const Tokenizer& tokenizer, std::span<const Token> tokens, std::string text, bool of_text) {
  std::size_t at = 0;
  for (std::size_t i = !tokens.empty() && tokens[0] == tokenizer.bos() ? 1 : 0; i < tokens.size(); ++i) {
    const std::string_view piece = tokenizer.piece(tokens[i], true);
    if (!is_special(tokenizer, tokens[i]) && !(of_text && piece != " " && tokenizer.special(piece))) break;
    at += piece.size();
  }
  return at < text.size() ? text.insert(at, 1, ' ') : text;
}

void check_round_trip(const Kind& kind, bool prefix, const Tokenizer& tokenizer, std::span<const Token> tokens,
                      std::string_view text) {
  const auto in_range = [&](Token token) {
    return token >= 0 && static_cast<std::size_t>(token) < tokenizer.token_count();
  };
  require(std::ranges::all_of(tokens, in_range));
  const auto back = tokenizer.decode(tokens, {.control = true, .drop_prefix = !kind.unigram()});
  require(back.has_value());
  if (kind.normalizes) return;
  constexpr Token kUnknown = 0;
  const auto unknown = [](Token a, Token b) { return a == kUnknown && b == kUnknown; };
  require(std::ranges::adjacent_find(tokens, unknown) == tokens.end());
  if (std::ranges::find(tokens, kUnknown) != tokens.end()) return require(!kind.bytes);
  if (!kind.unigram() || !prefix) return require(*back == text);
  require(*back == with_prefix(tokenizer, tokens, std::string(text), false) ||
          *back == with_prefix(tokenizer, tokens, std::string(text), true));
}

void check_text(const Kind& kind, bool prefix, const Tokenizer& tokenizer, std::string_view text) {
  for (const bool parse_special : {false, true})
    for (const bool add_bos : {false, true}) {
      const auto tokens = tokenizer.encode(text, {.add_bos = add_bos, .parse_special = parse_special});
      require(tokens.has_value());
      // A BOS marker that begins the text becomes the BOS and has no text any more; users may define one.
      const auto bare = tokenizer.encode(text, {.add_bos = false, .parse_special = parse_special});
      const bool marked = !bare->empty() && bare->front() == *tokenizer.bos();
      check_round_trip(kind, prefix, tokenizer, *tokens,
                       marked ? text.substr(tokenizer.piece(*tokenizer.bos(), true).size()) : text);
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
    std::ranges::copy_if(list, std::back_inserter(found), [&](Token token) { return is_special(tokenizer, token); });
    return found;
  };
  require(specials(*tokens) == specials(*chat->encode(none, tokenizer, true)));
}

struct Made {
  Metadata metadata;
  Tokenizer tokenizer;
};

const Made& fixed(std::size_t kind) {
  static const std::vector<Made> kMade = [] {
    std::vector<Made> made;
    for (const Kind& each : kKinds) {
      Metadata metadata = metadata_of(each, {.texts = small_pieces(), .types = {}});
      Tokenizer tokenizer = *Tokenizer::create(metadata);
      made.push_back({std::move(metadata), std::move(tokenizer)});
    }
    return made;
  }();
  return kMade[kind];
}

// Linear time takes a fraction of a second for this text, and time that grows with the square of a length far more than
// the fuzzer's limit.
void check_long(const Tokenizer& tokenizer, std::string_view text) {
  constexpr std::size_t kLong = 1 << 15;
  std::string repeated;
  while (!text.empty() && repeated.size() < kLong) repeated += text;
  require(tokenizer.encode(repeated, {.parse_special = true}).has_value());
}

void check(const Kind& kind, bool prefix, const Metadata& metadata, const Tokenizer& tokenizer, std::string_view text,
           bool repeated) {
  const std::string valid = as_utf8(tokenizer, text);
  if (repeated) return check_long(tokenizer, valid);
  check_text(kind, prefix, tokenizer, valid);
  check_chat(metadata, tokenizer, valid);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::size_t choice = 0;
  if (!text.empty() && static_cast<std::uint8_t>(text[0]) < 0x20) choice = static_cast<std::uint8_t>(take(text, 1)[0]);
  const std::size_t row = choice % 16 % std::size(kKinds);
  const Kind& kind = kKinds[row];
  const bool repeated = choice >= 16;
  if (!text.starts_with('V')) {
    const Made& made = fixed(row);
    check(kind, true, made.metadata, made.tokenizer, text, repeated);
    return 0;
  }
  take(text, 1);
  const Pieces pieces = pieces_from(text, kind);
  const bool prefix = pieces.texts.size() % 2 == 0;
  Metadata metadata = metadata_of(kind, pieces);
  metadata.set("tokenizer.ggml.add_space_prefix", prefix);
  const auto tokenizer = Tokenizer::create(metadata);
  require(tokenizer.has_value() || !pieces.charsmap.empty());
  if (tokenizer) check(kind, prefix, metadata, *tokenizer, text, repeated);
  return 0;
}
