#include "base/system/subprocess.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

extern char** environ;  // NOLINT(readability-redundant-declaration): not every system's header has it

namespace shunt {
namespace {

// An in-memory file: nothing waits for a reader, and nothing is left behind.
class Stream {
 public:
  Stream() : file_(memfd_create("shunt-tool", MFD_CLOEXEC)) {}
  ~Stream() {
    if (file_ >= 0) close(file_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] bool fill(std::span<const char> bytes) const {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t count = pwrite(file_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
      if (count <= 0) return false;
      at += static_cast<std::size_t>(count);
    }
    return file_ >= 0;
  }
  [[nodiscard]] std::string content() const {
    const off_t end = lseek(file_, 0, SEEK_END);
    std::string text(static_cast<std::size_t>(end < 0 ? 0 : end), '\0');
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t count = pread(file_, text.data() + at, text.size() - at, static_cast<off_t>(at));
      if (count <= 0) break;
      at += static_cast<std::size_t>(count);
    }
    return text;
  }

 private:
  int file_;
};

}  // namespace

Result<ToolResult> run_tool(std::span<const char* const> arguments, std::span<const char> input) {
  const Stream in;
  const Stream out;
  const Stream errors;
  if (!in.fill(input) || out.file() < 0 || errors.file() < 0)
    return fail(Code::io, fmt::format("cannot start {}: no memory for its input and output", arguments[0]));
  std::vector<char*> words;
  for (const char* argument : arguments) words.push_back(const_cast<char*>(argument));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [stream, number] : {std::pair{&in, STDIN_FILENO}, {&out, STDOUT_FILENO}, {&errors, STDERR_FILENO}})
    posix_spawn_file_actions_adddup2(&actions, stream->file(), number);
  pid_t process = -1;
  const int refused = posix_spawnp(&process, arguments[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused != 0)
    return fail(Code::io, fmt::format("cannot start {}: {}", arguments[0],
                                      refused == ENOENT ? "no such program is installed" : "the system refuses"));
  int state = 0;
  while (waitpid(process, &state, 0) < 0)
    if (errno != EINTR) return fail(Code::io, fmt::format("the exit status of {} is unknown", arguments[0]));
  return ToolResult{.exit = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state),
                    .output = out.content(),
                    .errors = errors.content()};
}

}  // namespace shunt
