#include "interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace shunt::cli {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<bool> ending{false};
std::atomic<int> signal_seen{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// A pipe that holds a byte for each signal: waiting on it misses none, whenever it comes. -1 where there is none.
using Pipe = std::array<std::atomic<int>, 2>;
Pipe signal_pipe{-1, -1};

void on_interrupt(int signal) {
  const int saved = errno;
  ending.store(true);
  signal_seen.store(signal);
  static_cast<void>(!write(signal_pipe[1].load(), "", 1));
  errno = saved;
}

void open_pipe() {
  std::array<int, 2> ends{};
  if (signal_pipe[0].load() >= 0 || pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return;
  for (std::size_t end = 0; end < ends.size(); ++end) signal_pipe[end].store(ends[end]);
}

void install() {
  open_pipe();
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  // The handler is gone after its first call. Reads and writes go on after it.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) static_cast<void>(sigaction(signal, &action, nullptr));
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  install();
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
  install();
}

}  // namespace shunt::cli
