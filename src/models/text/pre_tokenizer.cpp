#include "models/text/pre_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <span>

#include "models/text/utf8.h"

namespace shunt::models {
namespace {

#define SHUNT_SPLIT_RULE(name, pattern) constexpr std::string_view name = pattern;
#include "models/text/pre_tokenizers.def"

constexpr std::size_t kMaxRules = 4;

struct Row {
  std::string_view names;
  bool whole_words;
  bool adds_bos;
  std::array<std::string_view, kMaxRules> rules;  // the last ones may be empty
};

constexpr Row kRows[] = {
#define SHUNT_PRE_TOKENIZER(names, whole_words, adds_bos, ...) {names, whole_words, adds_bos, {__VA_ARGS__}},
#include "models/text/pre_tokenizers.def"
};

std::vector<std::string_view> names_of(const Row& row) {
  std::vector<std::string_view> names;
  for (const auto name : row.names | std::views::split(' ')) names.emplace_back(name.begin(), name.end());
  return names;
}

// Part of the text, in characters.
struct Range {
  std::size_t begin;
  std::size_t end;
};

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> characters;
  characters.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(begin));
    const bool valid = unit.kind == Utf8Unit::Kind::character;
    const std::size_t length = valid ? unit.length : 1;
    const char32_t code = valid ? code_point(text.substr(begin, length)) : U'\0';
    characters.push_back(
        {.code = code, .classes = valid ? classes_of(code) : 0, .begin = static_cast<std::uint32_t>(begin)});
    begin += length;
  }
  return characters;
}

// Appends the matches within `range`, and the text between them.
void cut(const Pattern& rule, std::span<const Character> text, Range range, std::vector<Range>& pieces) {
  const std::span<const Character> visible = text.first(range.end);  // lookahead stops at the end of a piece
  std::size_t begin = range.begin;                                   // of the text that no match has claimed
  for (std::size_t at = range.begin; at < range.end;) {
    const auto end = rule.match(visible, at);
    if (!end || *end == at) {
      ++at;
      continue;
    }
    if (begin < at) pieces.push_back({begin, at});
    pieces.push_back({at, *end});
    begin = at = *end;
  }
  if (begin < range.end) pieces.push_back({begin, range.end});
}

}  // namespace

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows)
    for (const std::string_view name : names_of(row)) names.push_back(name);
  return names;
}

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  const auto* const row = std::ranges::find_if(kRows, [&](const Row& each) {
    const std::vector<std::string_view> names = names_of(each);
    return std::ranges::find(names, name) != names.end();
  });
  if (row == std::ranges::end(kRows))
    return fail(Code::unsupported, fmt::format("pre-tokenizer \"{}\" (tokenizer.ggml.pre) is not known; known: {}",
                                               name, fmt::join(pre_tokenizer_names(), ", ")));
  std::vector<Pattern> rules;
  for (const std::string_view source : row->rules) {
    if (source.empty()) break;
    SHUNT_TRY_ASSIGN(Pattern rule, Pattern::parse(source));
    rules.push_back(std::move(rule));
  }
  return PreTokenizer(std::move(rules), row->whole_words, row->adds_bos);
}

void PreTokenizer::append_words(std::string_view text, std::vector<std::string_view>& words) const {
  const std::vector<Character> characters = characters_of(text);
  std::vector<Range> pieces;
  if (!characters.empty()) pieces.push_back({0, characters.size()});
  for (const Pattern& rule : rules_) {
    std::vector<Range> finer;
    for (const Range& piece : pieces) cut(rule, characters, piece, finer);
    pieces = std::move(finer);
  }
  const auto byte_at = [&](std::size_t index) {
    return index < characters.size() ? characters[index].begin : text.size();
  };
  for (const Range& piece : pieces)
    words.push_back(text.substr(byte_at(piece.begin), byte_at(piece.end) - byte_at(piece.begin)));
}

}  // namespace shunt::models
