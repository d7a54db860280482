// Ctrl-C and SIGTERM: the first asks the work to end after its current step, the second ends the process. A process
// that a signal ends leaves no unfinished file behind.
#pragma once

#include <atomic>

namespace shunt::cli {

// For the start of the program: signals end the process, which removes the files that it has not finished.
void leave_no_files_at_signals();
// From now on Ctrl-C sets the flag that is returned, which lives as long as the process.
const std::atomic<bool>& catch_interrupts();
// Sets the flag from within: the work has become pointless.
void end_soon();
// Whether Ctrl-C came since the last catch_interrupts() or forget_interrupt().
[[nodiscard]] bool was_interrupted();
// What shells expect of a process that a signal has ended: 130 after Ctrl-C.
[[nodiscard]] int interrupt_exit_code();
// A file that poll() finds readable once was_interrupted(); -1, which poll() ignores, before catch_interrupts().
[[nodiscard]] int interrupt_file();
// The interrupted work has ended, and other work goes on.
void forget_interrupt();

}  // namespace shunt::cli
