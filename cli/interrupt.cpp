#include "interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/system/whole_file.h"

namespace shunt::cli {
namespace {

// Global, because a signal handler can reach nothing else.
std::atomic<bool> ending{false};
std::atomic<int> signal_seen{0};
std::atomic<bool> is_awaited{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// A pipe with a byte for each signal, so that waiting on it misses none. -1 until it is opened.
using Pipe = std::array<std::atomic<int>, 2>;
Pipe signal_pipe{-1, -1};

// Sets the flag at the first awaited signal. Any other signal removes unfinished files and ends the process.
void on_signal(int signal) {
  const int saved = errno;
  if (!is_awaited.load() || signal_seen.exchange(signal) != 0) {
    remove_unfinished_files();
    static_cast<void>(std::signal(signal, SIG_DFL));
    static_cast<void>(raise(signal));  // once this function has returned
    return;
  }
  ending.store(true);
  static_cast<void>(!write(signal_pipe[1].load(), "", 1));
  errno = saved;
}

void open_pipe() {
  std::array<int, 2> ends{};
  if (signal_pipe[0].load() >= 0 || pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return;
  for (std::size_t end = 0; end < ends.size(); ++end) signal_pipe[end].store(ends[end]);
}

void install(int signal) {
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes continue after a signal
  // Blocks the other signals while one is handled.
  for (const int other : {SIGINT, SIGTERM, SIGHUP}) static_cast<void>(sigaddset(&action.sa_mask, other));
  static_cast<void>(sigaction(signal, &action, nullptr));
}

}  // namespace

void leave_no_files_at_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    // An ignored signal stays ignored, as nohup expects.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) install(signal);
  }
  // Exceeding the file size limit is an error of the write; it must not end the process.
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
}

const std::atomic<bool>& catch_interrupts() {
  open_pipe();
  is_awaited.store(true);
  for (const int signal : {SIGINT, SIGTERM}) install(signal);
  return ending;
}

void end_soon() { ending.store(true); }
bool was_interrupted() { return signal_seen.load() != 0; }

int interrupt_exit_code() { return 128 + signal_seen.load(); }

int interrupt_file() { return signal_pipe[0].load(); }

void forget_interrupt() {
  ending.store(false);
  signal_seen.store(0);
  for (char byte = 0; read(signal_pipe[0].load(), &byte, 1) == 1;) {
  }
}

}  // namespace shunt::cli
