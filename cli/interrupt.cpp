#include "interrupt.h"

#include <csignal>

namespace shunt::cli {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<bool> ending{false};
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  ending.store(true);
  interrupted.store(true);
}

void install() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  // The handler is gone after its first call. Writes go on after it; waiting for input ends (poll).
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  static_cast<void>(sigaction(SIGINT, &action, nullptr));
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  install();
  return ending;
}

void end_soon() { ending.store(true); }
bool was_interrupted() { return interrupted.load(); }

void forget_interrupt() {
  ending.store(false);
  interrupted.store(false);
  install();
}

}  // namespace shunt::cli
