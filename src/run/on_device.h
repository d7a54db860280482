// Names the device in the errors of its calls. A plain function; any thread.
#pragma once

#include "devices/device.h"

namespace shunt {

// Returns the same outcome. Its error is the device's failure, unless it is one of the input or of a file, or already
// that of another device.
template <class Outcome>
[[nodiscard]] Outcome on_device(const Device& device, Outcome outcome) {
  if (!outcome && outcome.error().device.empty() && outcome.error().code != Code::invalid &&
      outcome.error().code != Code::io)
    outcome.error().device = device.info().id;
  return outcome;
}

}  // namespace shunt
