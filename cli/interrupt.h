// Ctrl-C and SIGTERM: the first asks the work to end after its current step, the second ends the process. A process
// that a signal ends leaves no unfinished files.
#pragma once

#include <atomic>

namespace shunt::cli {

// Call at the start of the program: from then on a signal that ends the process removes its unfinished files.
void leave_no_files_at_signals();
// From now on Ctrl-C sets the returned flag, which lives as long as the process.
const std::atomic<bool>& catch_interrupts();
// Sets the flag without a signal, if the work has become pointless.
void end_soon();
// Whether Ctrl-C came since the last catch_interrupts() or forget_interrupt().
[[nodiscard]] bool was_interrupted();
// The exit code that shells expect after a signal: 130 after Ctrl-C.
[[nodiscard]] int interrupt_exit_code();
// A file descriptor that becomes readable once was_interrupted(); -1, which poll() ignores, before catch_interrupts().
[[nodiscard]] int interrupt_file();
// Resets the flag after the interrupted work has ended, so that other work can go on.
void forget_interrupt();

}  // namespace shunt::cli
