// Simulated machines: devices as a JSON file describes them (docs/machines.md). Plain values and functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "devices/sim/spec.h"
#include "shunt/status.h"

namespace shunt::sim {

struct Machine {
  std::string name;
  std::vector<Spec> devices;  // one of them at least is a processor; none is emulated
};

// `origin`: what messages call the text. Errors: invalid, with the device, the key, what stands there and what may.
[[nodiscard]] Result<Machine> machine_from_json(std::string_view text, std::string_view origin);
// Errors: those of machine_from_json(); io where the file cannot be read.
[[nodiscard]] Result<Machine> read_machine(const std::string& file);

}  // namespace shunt::sim
