#include "interrupt.h"

#include <csignal>

namespace shunt::cli {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<bool> ending{false};
std::atomic<int> signal_seen{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_interrupt(int signal) {
  ending.store(true);
  signal_seen.store(signal);
}

void install() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  // The handler is gone after its first call. Writes go on after it; waiting for input ends (poll).
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

void forget_interrupt() {
  ending.store(false);
  signal_seen.store(0);
  install();
}

}  // namespace shunt::cli
