// `shunt bench ops --curve`: how long each device takes to start work, and how fast it copies. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "devices/device.h"

namespace shunt::cli {

// Measures and prints. `threads` of the processor read memory beside the copies; 0: one per core. Errors: those of
// devices. A device that cannot copy, or a size that does not fit its memory, is reported in the output instead.
[[nodiscard]] Status bench_rates(std::span<Device* const> devices, std::uint32_t threads, std::uint32_t repetitions,
                                 bool json);

}  // namespace shunt::cli
