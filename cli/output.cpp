#include "output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "printable.h"

namespace shunt::cli {
namespace {

bool pipe_broke = false;

constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kRed = "\033[1;31m";
constexpr std::string_view kEnd = "\033[0m";

std::string coloured(std::string_view colour, std::string_view text) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  if (!is_terminal(STDERR_FILENO) || set("NO_COLOR") || dumb) return std::string(text);
  return fmt::format("{}{}{}", colour, text, kEnd);
}

// Ignores failures: stderr may be closed.
void write_error(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

}  // namespace

Status print(std::string_view words) {
  // Files and pipes get the exact bytes; a terminal gets nothing that controls it.
  const std::string safe = is_terminal(STDOUT_FILENO) ? printable(words) : std::string();
  const std::string_view text = is_terminal(STDOUT_FILENO) ? std::string_view(safe) : words;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  if (errno == EPIPE) pipe_broke = true;
  return fail(Code::io, fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

Status print_json(const Json& json) { return print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"); }

bool reader_left() { return pipe_broke; }

void say(std::string_view line) { write_error(fmt::format("{}\n", printable(line))); }
void note(std::string_view line) { write_error(fmt::format("{}\n", coloured(kDim, printable(line)))); }
void ask(std::string_view words) { write_error(coloured(kDim, printable(words))); }
void complain(std::string_view message) {
  write_error(fmt::format("{} {}\n", coloured(kRed, "shunt:"), printable(message)));
}
void complain_without_memory() noexcept {
  constexpr std::string_view kPlain = "shunt: out of memory\n";
  static_cast<void>(!write(STDERR_FILENO, kPlain.data(), kPlain.size()));
}

bool is_terminal(int file) { return isatty(file) != 0; }

void ProgressLine::show(std::string_view text) {
  if (!is_terminal(STDERR_FILENO)) return;
  write_error(fmt::format("\r\033[K{}", coloured(kDim, printable(text))));
  shown_ = true;
}

void ProgressLine::show_share(std::string_view text, std::uint64_t done_bytes, std::uint64_t total_bytes) {
  const std::uint64_t hundredth = done_bytes / std::max<std::uint64_t>(total_bytes / 100, 1);
  if (std::exchange(hundredth_, hundredth) == hundredth) return;
  show(fmt::format("{}: {} of {}", text, in_units(done_bytes), in_units(total_bytes)));
}

void ProgressLine::clear() {
  if (std::exchange(shown_, false)) write_error("\r\033[K");
}

std::string in_columns(const Rows& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t column = 0; column + 1 < row.size(); ++column)
      widths[column] = std::min(std::max(widths[column], row[column].size()), kMostColumnBytes);
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column)
      text += fmt::format("{}{:<{}}", column == 0 ? "" : "  ", row[column], widths[column]);
    text += '\n';
  }
  return text;
}

std::string in_words(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string in_quotes(std::string_view bytes) {
  return Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shunt::cli
