// Which device a strategy prefers. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "run/pool/device_pool.h"
#include "shunt/strategy.h"

namespace shunt {

// "auto: by predicted time; gpu: ...", with `layers` where there are some.
[[nodiscard]] std::string describe_strategies(bool with_layers);

// For Search::preferred: the first device of the kind that a strategy prefers, an emulated one only where there is
// no other; kNone where there is none, and where it prefers none.
[[nodiscard]] std::uint32_t preferred_device(Strategy strategy, std::span<Device* const> devices);

// Tells the user where a strategy prefers devices that there are none of: then it is as `auto`. Errors: unsupported
// where that is strict.
[[nodiscard]] Status check_strategy(Strategy strategy, const DevicePool& device_pool);

}  // namespace shunt
