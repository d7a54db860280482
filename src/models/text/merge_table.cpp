#include "models/text/merge_table.h"

#include <fmt/format.h>

#include <limits>
#include <string>

namespace shunt::models {
namespace {

// Returns the token that a merge calls `letters`: usually a normal one, in some files a user-defined one.
std::optional<Token> token_spelled(const Vocabulary& vocabulary, std::string_view letters) {
  const std::string bytes = Vocabulary::bytes_spelled(letters);
  if (const auto token = vocabulary.find_normal(bytes)) return token;
  return vocabulary.find_special(bytes);
}

}  // namespace

Result<MergeTable> MergeTable::create(const Metadata& metadata, const Vocabulary& vocabulary) {
  SHUNT_TRY_ASSIGN(const std::vector<std::string>* lines, metadata.strings("tokenizer.ggml.merges"));
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (lines->size() > kMost)
    return fail(Code::invalid,
                fmt::format("tokenizer.ggml.merges has {} merges; at most {} are possible", lines->size(), kMost));
  MergeTable table;
  table.merges_.reserve(lines->size());
  for (std::size_t rank = 0; rank < lines->size(); ++rank) {
    const std::string_view line = (*lines)[rank];
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size())
      return fail(Code::invalid,
                  fmt::format("merge {} is \"{}\"; two tokens with a space between them are expected", rank, line));
    const std::string_view left = line.substr(0, space);
    const std::string_view right = line.substr(space + 1);
    const auto left_token = token_spelled(vocabulary, left);
    const auto right_token = token_spelled(vocabulary, right);
    const auto token = token_spelled(vocabulary, std::string(left) + std::string(right));
    if (!left_token || !right_token || !token)
      return fail(Code::invalid,
                  fmt::format("merge {}, \"{}\", needs the token \"{}\", which the vocabulary lacks", rank, line,
                              !left_token    ? left
                              : !right_token ? right
                                             : std::string(left) + std::string(right)));
    table.merges_.try_emplace(key(*left_token, *right_token),
                              Merge{.rank = static_cast<std::uint32_t>(rank), .token = *token});
  }
  return table;
}

}  // namespace shunt::models
