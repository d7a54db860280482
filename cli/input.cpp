#include "input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/system/text_file.h"
#include "interrupt.h"

namespace shunt::cli {
namespace {

constexpr std::size_t kPieceBytes = 4096;

// Returns the number of bytes read; 0 at the end.
Result<std::size_t> read_piece(std::string& text) {
  char piece[kPieceBytes];
  while (true) {
    const ssize_t count = read(STDIN_FILENO, piece, sizeof piece);
    if (count >= 0) {
      text.append(piece, static_cast<std::size_t>(count));
      return static_cast<std::size_t>(count);
    }
    if (errno != EINTR) return fail(Code::io, fmt::format("cannot read stdin: {}", std::strerror(errno)));
  }
}

}  // namespace

Result<std::string> read_stdin() {
  std::string text;
  while (true) {
    SHUNT_TRY_ASSIGN(const std::size_t count, read_piece(text));
    if (count == 0) break;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<std::string> read_text(const std::string& path) {
  SHUNT_TRY_ASSIGN(std::string text, read_text_file(path));
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) return fail(Code::invalid, fmt::format("{} is empty; write some text into it", path));
  return text;
}

std::optional<std::string> LineReader::next() {
  while (!pending_.contains('\n')) {
    if (was_interrupted()) return std::nullopt;
    std::array<pollfd, 2> files{pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                pollfd{.fd = interrupt_file(), .events = POLLIN, .revents = 0}};
    const int ready = poll(files.data(), files.size(), -1);
    if (was_interrupted() || (ready < 0 && errno != EINTR)) return std::nullopt;
    if (ready < 0) continue;
    const auto count = read_piece(pending_);
    if (count && *count > 0) continue;
    if (pending_.empty()) return std::nullopt;
    pending_ += '\n';
  }
  const std::size_t end = pending_.find('\n');
  std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return line;
}

}  // namespace shunt::cli
