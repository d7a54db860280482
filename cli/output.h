// Where words go: data to stdout, words for people to stderr. One thread.
//
// A terminal gets nothing from a file that would steer it (printable.h), nor does stderr anywhere.
// Colours appear on terminals only, and not where NO_COLOR is set (https://no-color.org).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/units.h"
#include "shunt/status.h"

namespace shunt::cli {

// Writes all of it to stdout at once; whole characters, if it is text. Errors: io; see also reader_left().
[[nodiscard]] Status print(std::string_view words);
[[nodiscard]] Status print_json(const Json& json);
// A write failed because whoever read stdout has closed it: no error of ours.
[[nodiscard]] bool reader_left();

// A line for people, on stderr.
void say(std::string_view line);
// The same, set back.
void note(std::string_view line);
// Words that input is to follow, on stderr.
void ask(std::string_view words);
// "shunt: message"
void complain(std::string_view message);
// "shunt: out of memory", without taking any.
void complain_without_memory() noexcept;

[[nodiscard]] bool is_terminal(int file);

// One line on a terminal's stderr that is written over again and goes away at the end; nothing elsewhere.
class ProgressLine {
 public:
  ProgressLine() = default;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }
  void show(std::string_view text);
  // "text: 1.5 MiB of 3.0 MiB", where that has changed by a hundredth.
  void show_share(std::string_view text, std::uint64_t done_bytes, std::uint64_t total_bytes);
  void clear();

 private:
  bool shown_ = false;
  std::uint64_t hundredth_ = ~std::uint64_t{0};
};

// The first row is the heading. Columns are as wide as their widest cell, up to kMostColumnBytes, two spaces apart.
using Rows = std::vector<std::vector<std::string>>;
[[nodiscard]] std::string in_columns(const Rows& rows);
using shunt::in_units;
// "1 token", "2 tokens"
[[nodiscard]] std::string in_words(std::uint64_t count, std::string_view thing);
// In quotes, with escapes, on one line: what is no character shows as U+FFFD.
[[nodiscard]] std::string in_quotes(std::string_view bytes);

}  // namespace shunt::cli
