// Output: data goes to stdout, messages go to stderr. One thread.
//
// Text for a terminal, and all text for stderr, is escaped so that it cannot control the terminal (printable.h).
// Colours appear on terminals only, and not if NO_COLOR is set (https://no-color.org).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/units.h"
#include "shunt/status.h"

namespace shunt::cli {

// Writes `words` to stdout and flushes it. Text must consist of whole characters. Errors: io; see also reader_left().
[[nodiscard]] Status print(std::string_view words);
[[nodiscard]] Status print_json(const Json& json);
// Whether a write failed because the reader of stdout has closed it, which counts as success.
[[nodiscard]] bool reader_left();

// Writes a line to stderr.
void say(std::string_view line);
// Writes a dimmed line to stderr.
void note(std::string_view line);
// Writes a prompt for input to stderr, without a newline.
void ask(std::string_view words);
// Writes "shunt: message" to stderr.
void complain(std::string_view message);
// Writes "shunt: out of memory" to stderr without allocating.
void complain_without_memory() noexcept;

[[nodiscard]] bool is_terminal(int file);

// A line on stderr that is overwritten, and cleared at the end. Shown on terminals only.
class ProgressLine {
 public:
  ProgressLine() = default;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }
  void show(std::string_view text);
  // Shows "text: 1.5 MiB of 3.0 MiB" whenever the share has changed by a hundredth.
  void show_share(std::string_view text, std::uint64_t done_bytes, std::uint64_t total_bytes);
  void clear();

 private:
  bool shown_ = false;
  std::uint64_t hundredth_ = ~std::uint64_t{0};
};

// Formats rows, the first of which is the heading. Columns are as wide as their widest cell, up to kMostColumnBytes,
// and two spaces apart.
using Rows = std::vector<std::vector<std::string>>;
[[nodiscard]] std::string in_columns(const Rows& rows);
using shunt::in_units;
// "1 token", "2 tokens"
[[nodiscard]] std::string in_words(std::uint64_t count, std::string_view thing);
// Quotes and escapes bytes on one line. Invalid UTF-8 shows as U+FFFD.
[[nodiscard]] std::string in_quotes(std::string_view bytes);

}  // namespace shunt::cli
