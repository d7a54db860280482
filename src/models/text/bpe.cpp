#include "models/text/bpe.h"

#include <algorithm>

#include "models/text/utf8.h"

namespace shunt::models {

void BpeMerger::append_tokens(std::string_view text, std::vector<Token>& tokens) {
  if (!vocabulary_.words_stay_apart()) return append_word(text, tokens);
  std::size_t begin = 0;
  for (std::size_t at = 1; at < text.size(); ++at)
    if (text[at] == ' ' && text[at - 1] != ' ') {
      append_word(text.substr(begin, at - begin), tokens);
      begin = at;
    }
  append_word(text.substr(begin), tokens);
}

void BpeMerger::append_word(std::string_view word, std::vector<Token>& tokens) {
  if (word.empty()) return;
  split_characters(word);
  merge_all(word);
  for (std::uint32_t at = 0; at != kEnd; at = symbols_[at].next) append_symbol(symbols_[at], word, tokens);
}

void BpeMerger::split_characters(std::string_view word) {
  symbols_.clear();
  for (std::size_t begin = 0; begin < word.size();) {
    const Utf8Unit unit = first_utf8_unit(word.substr(begin));
    // A byte that belongs to no character is a symbol of its own, so that decoding restores it.
    const bool whole = merge_table_ == nullptr && unit.kind == Utf8Unit::Kind::character;
    const std::size_t length = whole ? unit.length : 1;
    const auto index = static_cast<std::uint32_t>(symbols_.size());
    symbols_.push_back({.begin = static_cast<std::uint32_t>(begin),
                        .length = static_cast<std::uint32_t>(length),
                        .previous = index == 0 ? kEnd : index - 1,
                        .next = begin + length < word.size() ? index + 1 : kEnd,
                        .token = vocabulary_.find_normal(word.substr(begin, length)).value_or(kNone)});
    begin += length;
  }
}

namespace {
constexpr auto kWorse = [](const auto& a, const auto& b) {
  return a.score != b.score ? a.score < b.score : a.left > b.left;
};
}  // namespace

void BpeMerger::consider(std::string_view word, std::uint32_t left, std::uint32_t right) {
  if (left == kEnd || right == kEnd) return;
  const std::uint32_t length = symbols_[left].length + symbols_[right].length;
  Merge merge{.score = 0, .left = left, .right = right, .length = length, .token = kNone};
  if (merge_table_ != nullptr) {
    const auto found = merge_table_->find(symbols_[left].token, symbols_[right].token);
    if (!found) return;
    merge.score = -static_cast<float>(found->rank);
    merge.token = found->token;
  } else {
    const auto token = vocabulary_.find_normal(word.substr(symbols_[left].begin, length));
    if (!token) return;
    merge.score = vocabulary_.score(*token);
    merge.token = *token;
  }
  merges_.push_back(merge);
  std::ranges::push_heap(merges_, kWorse);
}

void BpeMerger::merge_all(std::string_view word) {
  merges_.clear();
  for (std::uint32_t at = 0; at + 1 < symbols_.size(); ++at) consider(word, at, at + 1);
  while (!merges_.empty()) {
    std::ranges::pop_heap(merges_, kWorse);
    const Merge merge = merges_.back();
    merges_.pop_back();
    Symbol& left = symbols_[merge.left];
    Symbol& right = symbols_[merge.right];
    if (left.length == 0 || right.length == 0 || left.length + right.length != merge.length) continue;
    left.length = merge.length;
    left.token = merge.token;
    left.next = right.next;
    right.length = 0;
    if (left.next != kEnd) symbols_[left.next].previous = merge.left;
    consider(word, left.previous, merge.left);
    consider(word, merge.left, left.next);
  }
}

void BpeMerger::append_symbol(const Symbol& symbol, std::string_view word, std::vector<Token>& tokens) const {
  if (symbol.token != kNone) return tokens.push_back(symbol.token);
  if (vocabulary_.append_bytes(word.substr(symbol.begin, symbol.length), tokens)) return;
  if (const auto unknown = vocabulary_.unknown()) tokens.push_back(*unknown);  // one for the whole character
}

}  // namespace shunt::models
