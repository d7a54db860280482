// Progress and interruption of long calls through C callbacks. Plain functions; any thread.
#pragma once

#include "shunt/shunt.h"
#include "shunt/watch.h"

namespace shunt::c {

// Shares ownership of the interrupt's flag. Both the interrupt and the callback may be null.
[[nodiscard]] Watch watch_of(shunt_on_progress on_progress, void* user, const shunt_interrupt* interrupt);

}  // namespace shunt::c
