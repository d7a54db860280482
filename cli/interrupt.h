// Ctrl-C: the first asks the work to end after its current step, the second ends the process.
#pragma once

#include <atomic>

namespace shunt::cli {

// From now on Ctrl-C sets the flag that is returned; it lives as long as the process.
const std::atomic<bool>* catch_interrupts();
[[nodiscard]] bool was_interrupted();

}  // namespace shunt::cli
