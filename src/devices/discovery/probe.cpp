#include "devices/discovery/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/parse_json.h"
#include "devices/discovery/device_json.h"

namespace shunt {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the files that this process has mapped, each once.
std::vector<std::string> mapped_files() {
  std::vector<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t begin = line.find('/');
    if (begin == std::string::npos || line.find(" (deleted)") != std::string::npos) continue;
    files.push_back(line.substr(begin));
  }
  std::ranges::sort(files);
  files.erase(std::ranges::unique(files).begin(), files.end());
  // Devices and shared memory appear in the list too.
  std::erase_if(files,
                [](const std::string& file) { return file.starts_with("/dev/") || file.starts_with("/memfd:"); });
  return files;
}

// One child process and its answer.
struct Child {
  const ApiRow* api = nullptr;
  pid_t process = -1;
  int answers = -1;  // read end of a pipe
  int words = -1;    // its output and errors, an in-memory file
  std::string answer{};
  bool is_over = false;

  explicit Child(const ApiRow* of) : api(of) {}
  Child(Child&& other) noexcept
      : api(other.api),
        process(std::exchange(other.process, -1)),
        answers(std::exchange(other.answers, -1)),
        words(std::exchange(other.words, -1)),
        answer(std::move(other.answer)),
        is_over(other.is_over) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (process > 0) {
      static_cast<void>(kill(process, SIGKILL));
      static_cast<void>(wait());
    }
    for (const int file : {answers, words})
      if (file >= 0) close(file);
  }

  // Waits until the child has ended; returns its status.
  int wait() {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    process = -1;
    return status;
  }
};

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Runs in the child. The parent must notice nothing: no core file, no output, no signal handlers of its own, and no
// exception that reaches the copies of its functions.
[[noreturn]] void answer_and_end(const ApiRow& api, int answers, int words) noexcept {
  static_cast<void>(prctl(PR_SET_PDEATHSIG, SIGKILL));
  const rlimit none{0, 0};
  static_cast<void>(setrlimit(RLIMIT_CORE, &none));
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGINT, SIGTERM, SIGPIPE})
    static_cast<void>(std::signal(signal, SIG_DFL));
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) static_cast<void>(dup2(words, stream));
  const Json json = {{"report", to_json(start_here(api, {}))}, {"files", mapped_files()}};
  write_all(answers, json.dump(-1, ' ', false, Json::error_handler_t::replace));
  _exit(0);
}

Child start(const ApiRow& api) {
  Child child(&api);
  std::array<int, 2> pipe_ends{-1, -1};
  child.words = memfd_create("shunt-probe", MFD_CLOEXEC);
  if (child.words < 0 || pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return child;
  child.answers = pipe_ends[0];
  child.process = fork();
  if (child.process == 0) answer_and_end(api, pipe_ends[1], child.words);
  close(pipe_ends[1]);
  return child;
}

// Reads what is available. The answer ends when the child closes its end.
void read_some(Child& child) {
  std::array<char, 4096> piece{};
  const ssize_t count = read(child.answers, piece.data(), piece.size());
  if (count > 0)
    child.answer.append(piece.data(), static_cast<std::size_t>(count));
  else if (count == 0 || (errno != EINTR && errno != EAGAIN))
    child.is_over = true;
}

void read_until(std::span<Child> children, Clock::time_point deadline) {
  while (true) {
    std::vector<pollfd> waiting;
    std::vector<Child*> owners;
    for (Child& child : children)
      if (!child.is_over && child.process > 0) {
        waiting.push_back({.fd = child.answers, .events = POLLIN, .revents = 0});
        owners.push_back(&child);
      }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (waiting.empty() || left.count() <= 0) return;
    static_cast<void>(poll(waiting.data(), waiting.size(), static_cast<int>(left.count())));
    for (std::size_t i = 0; i < waiting.size(); ++i)
      if (waiting[i].revents != 0) read_some(*owners[i]);
  }
}

// Returns the last line of the child's stderr, for a message; empty if there is none.
std::string last_words(int file) {
  std::string text(4096, '\0');
  const off_t end = lseek(file, 0, SEEK_END);
  const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(text.size()));
  const ssize_t count = pread(file, text.data(), text.size(), begin);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  text.resize(text.find_last_not_of(" \n\r") + 1);
  text.erase(0, text.find_last_of('\n') + 1);
  return text.empty() ? text : fmt::format("; its last output: {}", text);
}

ProbedApi stopped(const ApiRow& api, StartStage stage, std::string reason) {
  return {.report = {.api = std::string(api.name), .stage = stage, .reason = std::move(reason)}, .files = {}};
}

// Ends the child, and reports its answer or how it ended.
ProbedApi conclude(Child& child, std::chrono::milliseconds patience) {
  if (child.process <= 0)
    return stopped(*child.api, StartStage::no_start,
                   fmt::format("cannot start a process to probe it: {}", std::strerror(errno)));
  if (!child.is_over) static_cast<void>(kill(child.process, SIGKILL));
  const int status = child.wait();
  if (!child.is_over)
    return stopped(
        *child.api, StartStage::timed_out,
        fmt::format("its driver did not start within {} s{}; update or remove it, then: shunt devices --again",
                    patience.count() / 1000, last_words(child.words)));
  const Json json = parse_json(child.answer);
  if (WIFEXITED(status) && json.is_object() && json.contains("report") && json.contains("files")) {
    if (auto report = report_from_json(json["report"]))
      return {.report = std::move(*report), .files = json["files"].get<std::vector<std::string>>()};
  }
  const std::string how = WIFSIGNALED(status)
                              ? fmt::format("signal {}, {}", WTERMSIG(status), strsignal(WTERMSIG(status)))
                              : fmt::format("exit status {}", WEXITSTATUS(status));
  return stopped(*child.api, StartStage::crashed,
                 fmt::format("its driver crashed when it was started ({}){}; update or remove it, then: shunt devices "
                             "--again",
                             how, last_words(child.words)));
}

}  // namespace

std::vector<ProbedApi> probe(std::span<const ApiRow* const> apis, std::chrono::milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  std::vector<Child> children;
  children.reserve(apis.size());
  for (const ApiRow* api : apis) children.push_back(start(*api));
  read_until(children, deadline);
  std::vector<ProbedApi> found;
  for (Child& child : children) found.push_back(conclude(child, patience));
  return found;
}

std::vector<const ApiRow*> to_probe(std::span<const ApiRow* const> apis) {
  std::vector<const ApiRow*> harmful;
  for (const ApiRow* api : apis)
    if (!api->library.empty()) harmful.push_back(api);
  if (harmful.empty()) return harmful;
  const std::vector<std::string> mapped = mapped_files();
  std::erase_if(harmful, [&](const ApiRow* api) {
    return std::ranges::any_of(mapped, [&](const std::string& file) {
      return std::string_view(file).substr(file.find_last_of('/') + 1).starts_with(api->library);
    });
  });
  return harmful;
}

}  // namespace shunt
