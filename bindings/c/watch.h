// Progress and interruption of long calls in the words of C. Plain functions; any thread.
#pragma once

#include "shunt/shunt.h"
#include "shunt/watch.h"

namespace shunt::c {

// Keeps the flag of the interrupt, which may be null, as may the callback.
[[nodiscard]] Watch watch_of(shunt_on_progress on_progress, void* user, const shunt_interrupt* interrupt);

}  // namespace shunt::c
