// What `shunt bench ops --curve` shows: what each device takes to start work, and how fast it copies. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "devices/device.h"

namespace shunt::cli {

// Measures and prints. `threads`: of the processor, whose memory is read beside copies; 0: one per core. Errors: those
// of devices, except that a device which cannot copy, or a size for which memory is lacking, is told in the output.
[[nodiscard]] Status bench_rates(std::span<Device* const> devices, std::uint32_t threads, std::uint32_t repetitions,
                                 bool json);

}  // namespace shunt::cli
