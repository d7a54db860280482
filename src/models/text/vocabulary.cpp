#include "models/text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "models/text/utf8.h"

namespace shunt::models {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kUnknownBytes = "\xEF\xBF\xBD";
constexpr Token kNone = -1;

std::optional<std::uint8_t> hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<std::uint8_t>(digit - '0');
  if (digit >= 'A' && digit <= 'F') return static_cast<std::uint8_t>(digit - 'A' + 10);
  if (digit >= 'a' && digit <= 'f') return static_cast<std::uint8_t>(digit - 'a' + 10);
  return std::nullopt;
}

// Parses 0x41 from "<0x41>".
std::optional<std::uint8_t> byte_named(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const auto high = hex_digit(text[3]);
  const auto low = hex_digit(text[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<std::uint8_t>(*high << 4 | *low);
}

std::string with_spaces(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const bool mark = text.starts_with(kSpaceMark);
    result += mark ? ' ' : text[0];
    text.remove_prefix(mark ? kSpaceMark.size() : 1);
  }
  return result;
}

// The letter that GPT-2 writes for each byte: itself if Latin-1 has a visible character, else one from U+0100 on.
constexpr std::array<char32_t, 256> kByteLetters = [] {
  std::array<char32_t, 256> letters{};
  char32_t next = 0x100;
  for (std::size_t byte = 0; byte < letters.size(); ++byte) {
    const bool visible = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    letters[byte] = visible ? static_cast<char32_t>(byte) : next++;
  }
  return letters;
}();
constexpr char32_t kLetterCount = 0x100 + 68;

// True for bytes that occur in valid UTF-8.
bool occurs_in_utf8(std::size_t byte) { return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5); }

bool has_space_inside(std::string_view bytes) {
  for (std::size_t at = 1; at < bytes.size(); ++at)
    if (bytes[at] == ' ' && bytes[at - 1] != ' ') return true;
  return false;
}

std::uint8_t byte_at(std::string_view bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }

}  // namespace

Result<std::optional<Token>> token_of(const Metadata& metadata, std::string_view key, std::size_t token_count) {
  if (metadata.find(key) == nullptr) return std::optional<Token>();
  SHUNT_TRY_ASSIGN(const std::uint32_t id, metadata.u32(key));
  if (id >= token_count)
    return fail(Code::invalid, fmt::format("{} is {}, outside the vocabulary of {} tokens", key, id, token_count));
  return std::optional<Token>(static_cast<Token>(id));
}

Result<Vocabulary> Vocabulary::create(const Metadata& metadata, Spelling spelling) {
  SHUNT_TRY_ASSIGN(const std::vector<std::string>* texts, metadata.strings("tokenizer.ggml.tokens"));
  const auto needed = [&](std::string_view key) {
    return spelling == Spelling::space_marks || metadata.find(key) != nullptr;
  };
  std::vector<float> scores(texts->size(), 0.0F);
  if (needed("tokenizer.ggml.scores")) {
    SHUNT_TRY_ASSIGN(scores, metadata.f32s("tokenizer.ggml.scores"));
  }
  std::vector<std::int32_t> types(texts->size(), static_cast<std::int32_t>(TokenType::normal));
  if (needed("tokenizer.ggml.token_type")) {
    SHUNT_TRY_ASSIGN(types, metadata.i32s("tokenizer.ggml.token_type"));
  }
  if (texts->empty() || texts->size() > static_cast<std::size_t>(std::numeric_limits<Token>::max()))
    return fail(Code::invalid, fmt::format("tokenizer.ggml.tokens has {} tokens; 1 to {} are possible", texts->size(),
                                           std::numeric_limits<Token>::max()));
  if (scores.size() != texts->size() || types.size() != texts->size())
    return fail(Code::invalid, fmt::format("tokenizer.ggml has {} tokens, {} scores and {} token_types; they must be "
                                           "equally many",
                                           texts->size(), scores.size(), types.size()));

  Vocabulary vocabulary(spelling);
  std::size_t bytes = 0;
  for (const std::string& text : *texts) bytes += std::max(text.size(), kUnknownBytes.size());
  vocabulary.bytes_.reserve(bytes);  // reserved because views into it are taken while it grows
  vocabulary.byte_tokens_.fill(kNone);
  for (std::size_t id = 0; id < texts->size(); ++id) {
    if (types[id] < 1 || types[id] > 6)
      return fail(Code::invalid, fmt::format("token {} has type {}; types are 1 to 6", id, types[id]));
    SHUNT_TRY(vocabulary.add((*texts)[id], static_cast<TokenType>(types[id]), scores[id]));
  }
  vocabulary.index_specials();
  SHUNT_TRY(vocabulary.find_unknown(metadata));
  return vocabulary;
}

std::string Vocabulary::bytes_spelled(std::string_view letters) {
  static constexpr std::array<std::int16_t, kLetterCount> kBytes = [] {
    std::array<std::int16_t, kLetterCount> bytes{};
    bytes.fill(-1);
    for (std::size_t byte = 0; byte < kByteLetters.size(); ++byte)
      bytes[kByteLetters[byte]] = static_cast<std::int16_t>(byte);
    return bytes;
  }();
  std::string bytes;
  for (std::string_view rest = letters; !rest.empty();) {
    const Utf8Unit unit = first_utf8_unit(rest);
    const bool valid = unit.kind == Utf8Unit::Kind::character;
    const char32_t letter = valid ? code_point(rest.substr(0, unit.length)) : kLetterCount;
    if (letter >= kBytes.size() || kBytes[letter] < 0) return std::string(letters);
    bytes += static_cast<char>(kBytes[letter]);
    rest.remove_prefix(unit.length);
  }
  return bytes;
}

std::string Vocabulary::spelled_out(std::string_view text, TokenType type) const {
  if (type == TokenType::unknown) return std::string(kUnknownBytes);
  if (spelling_ == Spelling::space_marks) return with_spaces(text);
  return type == TokenType::normal ? bytes_spelled(text) : std::string(text);
}

Status Vocabulary::add(std::string_view text, TokenType type, float score) {
  const auto id = static_cast<Token>(types_.size());
  if (std::isnan(score)) return fail(Code::invalid, fmt::format("the score of token {} is not a number", id));

  std::string bytes = spelled_out(text, type);
  if (type == TokenType::byte) {
    const auto byte = byte_named(text);
    if (!byte)
      return fail(Code::invalid,
                  fmt::format("token {} is of type byte and {} bytes long; byte tokens are named <0x00> to <0xFF>", id,
                              text.size()));
    bytes.assign(1, static_cast<char>(*byte));
    if (byte_tokens_[*byte] == kNone) byte_tokens_[*byte] = id;
  }
  const std::size_t begin = bytes_.size();
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  ends_.push_back(bytes_.size());
  types_.push_back(type);
  scores_.push_back(score);

  const std::string_view stored(bytes_.data() + begin, bytes.size());
  if (stored.empty()) return {};
  if (type == TokenType::normal) {
    normal_.try_emplace(stored, id);
    if (spelling_ == Spelling::byte_letters && stored.size() == 1 && byte_tokens_[byte_at(stored, 0)] == kNone)
      byte_tokens_[byte_at(stored, 0)] = id;
    if (has_space_inside(stored)) words_stay_apart_ = false;
  }
  if (type == TokenType::control || type == TokenType::user_defined) specials_.push_back(id);
  return {};
}

void Vocabulary::index_specials() {
  const auto text_and_type = [&](Token token) { return std::pair(bytes(token), type(token)); };
  std::ranges::sort(
      specials_, [&](Token a, Token b) { return std::tuple(bytes(a), type(a), a) < std::tuple(bytes(b), type(b), b); });
  const auto repeated = std::ranges::unique(specials_, {}, text_and_type);
  specials_.erase(repeated.begin(), repeated.end());
  for (const Token token : specials_) begins_special_[byte_at(bytes(token), 0)] = true;
}

Status Vocabulary::find_unknown(const Metadata& metadata) {
  SHUNT_TRY_ASSIGN(unknown_, token_of(metadata, "tokenizer.ggml.unknown_token_id", size()));
  if (const auto place = std::ranges::find(types_, TokenType::unknown); !unknown_ && place != types_.end())
    unknown_ = static_cast<Token>(place - types_.begin());
  std::size_t missing = 0;
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte)
    if (occurs_in_utf8(byte) && byte_tokens_[byte] == kNone) ++missing;
  if (missing > 0 && !unknown_)
    return fail(Code::invalid, fmt::format("the vocabulary lacks {} of 243 byte tokens and has no unknown token "
                                           "(tokenizer.ggml.unknown_token_id): not every text could be encoded",
                                           missing));
  return {};
}

std::string_view Vocabulary::bytes(Token token) const {
  const auto index = static_cast<std::size_t>(token);
  const std::uint64_t begin = index == 0 ? 0 : ends_[index - 1];
  return {bytes_.data() + begin, static_cast<std::size_t>(ends_[index] - begin)};
}

std::optional<Token> Vocabulary::find_normal(std::string_view bytes) const {
  const auto place = normal_.find(bytes);
  return place == normal_.end() ? std::nullopt : std::optional(place->second);
}

std::optional<Token> Vocabulary::byte_token(std::uint8_t byte) const {
  return byte_tokens_[byte] == kNone ? std::nullopt : std::optional(byte_tokens_[byte]);
}

bool Vocabulary::append_bytes(std::string_view bytes, std::vector<Token>& tokens) const {
  const std::size_t before = tokens.size();
  for (const char byte : bytes) {
    const auto token = byte_token(static_cast<std::uint8_t>(byte));
    if (!token) {
      tokens.resize(before);
      return false;
    }
    tokens.push_back(*token);
  }
  return true;
}

std::optional<Token> Vocabulary::find_special(std::string_view text) const {
  const auto match = match_special(text, true);
  return match && bytes(*match).size() == text.size() ? match : std::nullopt;
}

// Narrows the sorted list byte by byte to the tokens that share a prefix with the text.
std::optional<Token> Vocabulary::match_special(std::string_view text, bool control) const {
  const auto counts = [&](Token token) { return control || type(token) == TokenType::user_defined; };
  std::optional<Token> longest;
  std::span<const Token> candidates = specials_;
  for (std::size_t depth = 0; candidates.size() > 1; ++depth) {
    std::size_t complete = 0;  // at most one control and one user-defined token have this exact text
    while (complete < candidates.size() && bytes(candidates[complete]).size() == depth) ++complete;
    for (std::size_t at = complete; at-- > 0;)
      if (counts(candidates[at])) longest = candidates[at];
    candidates = candidates.subspan(complete);
    if (depth == text.size()) return longest;
    const auto same = std::ranges::equal_range(candidates, byte_at(text, depth), {},
                                               [&](Token token) { return byte_at(bytes(token), depth); });
    candidates = {same.begin(), same.end()};
  }
  if (candidates.size() == 1 && counts(candidates[0]) && text.starts_with(bytes(candidates[0])))
    longest = candidates[0];
  return longest;
}

}  // namespace shunt::models
