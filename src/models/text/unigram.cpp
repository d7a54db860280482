#include "models/text/unigram.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <span>

#include "models/text/utf8.h"

namespace shunt::models {
namespace {

// How far the score of an unknown character is below that of the least likely token, as in SentencePiece.
constexpr double kUnknownPenalty = 10.0;
constexpr Token kUnknown = -1;

Result<std::vector<std::uint8_t>> charsmap_bytes(const Metadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  const MetadataValue* value = metadata.find(kKey);
  if (value == nullptr) return std::vector<std::uint8_t>();
  if (const auto* bytes = std::get_if<std::vector<std::uint8_t>>(value)) return *bytes;
  if (const auto* bytes = std::get_if<std::vector<std::int8_t>>(value))
    return std::vector<std::uint8_t>(bytes->begin(), bytes->end());
  return fail(Code::invalid, std::string(kKey) + " is " + type_name(*value) + "; an array of u8 or i8 is expected");
}

}  // namespace

// A position between two characters, with the best path to it.
struct Unigram::Node {
  double score = -std::numeric_limits<double>::infinity();
  std::size_t from = 0;
  Token token = kUnknown;
};

Result<Unigram> Unigram::create(const Metadata& metadata, const Vocabulary& vocabulary) {
  Unigram unigram;
  SHUNT_TRY_ASSIGN(const std::vector<std::uint8_t> map, charsmap_bytes(metadata));
  SHUNT_TRY_ASSIGN(unigram.charsmap_, Charsmap::parse(map));
  SHUNT_TRY_ASSIGN(unigram.single_spaces_, metadata.boolean_or("tokenizer.ggml.remove_extra_whitespaces", false));
  float least = 0;
  for (Token token = 0; vocabulary.contains(token); ++token) {
    if (vocabulary.type(token) != TokenType::normal || vocabulary.bytes(token).empty()) continue;
    if (vocabulary.score(token) == -std::numeric_limits<float>::infinity()) continue;  // never the best choice
    least = unigram.by_bytes_.empty() ? vocabulary.score(token) : std::min(least, vocabulary.score(token));
    unigram.by_bytes_.push_back(token);
  }
  unigram.unknown_score_ = static_cast<double>(least) - kUnknownPenalty;
  const auto bytes_of = [&](Token token) { return vocabulary.bytes(token); };
  std::ranges::stable_sort(unigram.by_bytes_, {}, bytes_of);
  // Of tokens with equal bytes only the first is ever used.
  const auto repeated = std::ranges::unique(unigram.by_bytes_, {}, bytes_of);
  unigram.by_bytes_.erase(repeated.begin(), repeated.end());
  return unigram;
}

std::string Unigram::normalize(std::string_view text, bool prefix) const {
  std::string result;
  bool after_space = single_spaces_;  // so that no space begins the text
  for (std::size_t at = 0; at < text.size();) {
    const Charsmap::Replacement step = charsmap_.first(text.substr(at));
    at += step.length;
    for (const char byte : step.text) {
      if (byte == ' ' && after_space) continue;
      result += byte;
      after_space = single_spaces_ && byte == ' ';
    }
  }
  if (single_spaces_ && result.ends_with(' ')) result.pop_back();
  return prefix && !result.empty() ? " " + result : result;
}

// Visits all tokens that begin at `at`, narrowing the sorted list byte by byte.
void Unigram::extend(std::string_view text, std::size_t at, const Vocabulary& vocabulary,
                     std::vector<Node>& nodes) const {
  const auto reach = [&](std::size_t end, double score, Token token) {
    if (nodes[at].score + score > nodes[end].score) nodes[end] = {nodes[at].score + score, at, token};
  };
  const std::size_t character = first_utf8_unit(text.substr(at)).length;
  bool covered = false;  // by a single token
  std::span<const Token> candidates = by_bytes_;
  for (std::size_t length = 1; at + length <= text.size(); ++length) {
    const auto byte_of = [&](Token token) { return static_cast<std::uint8_t>(vocabulary.bytes(token)[length - 1]); };
    const auto same =
        std::ranges::equal_range(candidates, static_cast<std::uint8_t>(text[at + length - 1]), {}, byte_of);
    candidates = {same.begin(), same.end()};
    if (candidates.empty()) break;
    const Token token = candidates.front();
    if (vocabulary.bytes(token).size() > length) continue;
    reach(at + length, static_cast<double>(vocabulary.score(token)), token);
    covered = covered || length == character;
    candidates = candidates.subspan(1);
    if (candidates.empty()) break;
  }
  if (!covered) reach(at + character, unknown_score_, kUnknown);
}

void Unigram::append_tokens(std::string_view text, const Vocabulary& vocabulary, std::vector<Token>& tokens) const {
  std::vector<Node> nodes(text.size() + 1);
  nodes[0].score = 0;
  for (std::size_t at = 0; at < text.size(); at += first_utf8_unit(text.substr(at)).length)
    extend(text, at, vocabulary, nodes);

  std::vector<std::size_t> path;  // the ends of the pieces, last first
  for (std::size_t end = text.size(); end > 0; end = nodes[end].from) path.push_back(end);
  bool after_unknown = false;
  for (const std::size_t end : path | std::views::reverse) {
    const Node& node = nodes[end];
    const bool unknown = node.token == kUnknown;
    if (!unknown) tokens.push_back(node.token);
    const bool as_bytes = unknown && vocabulary.append_bytes(text.substr(node.from, end - node.from), tokens);
    if (unknown && !as_bytes && !after_unknown && vocabulary.unknown()) tokens.push_back(*vocabulary.unknown());
    after_unknown = unknown && !as_bytes;
  }
}

}  // namespace shunt::models
