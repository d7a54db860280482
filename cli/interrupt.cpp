#include "interrupt.h"

#include <csignal>

namespace shunt::cli {
namespace {

// A signal handler reaches nothing but a global.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  interrupted.store(true);
  static_cast<void>(std::signal(SIGINT, SIG_DFL));
}

}  // namespace

const std::atomic<bool>* catch_interrupts() {
  static_cast<void>(std::signal(SIGINT, on_interrupt));
  return &interrupted;
}

bool was_interrupted() { return interrupted.load(); }

}  // namespace shunt::cli
