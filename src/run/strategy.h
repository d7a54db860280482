// Selects the device that a strategy prefers. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "run/pool/device_pool.h"
#include "shunt/strategy.h"

namespace shunt {

// "auto: by predicted time; gpu: ...", including `layers` if asked for.
[[nodiscard]] std::string describe_strategies(bool with_layers);

// Returns Search::preferred: the first device of the kind that a strategy prefers. An emulated device is chosen only if
// there is no other. kNone if there is none, or the strategy prefers no kind.
[[nodiscard]] std::uint32_t preferred_device(Strategy strategy, std::span<Device* const> devices);

// Notifies the user if a strategy prefers devices that do not exist; it then works as `auto`. Errors: unsupported if
// that is strict.
[[nodiscard]] Status check_strategy(Strategy strategy, const DevicePool& device_pool);

}  // namespace shunt
