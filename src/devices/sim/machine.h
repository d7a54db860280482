// Simulated machines: devices described by a JSON file (docs/machines.md). Plain values and functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "devices/sim/spec.h"
#include "shunt/status.h"

namespace shunt::sim {

struct Machine {
  std::string name;
  std::vector<Spec> devices;  // at least one is a processor; none is emulated
};

// `origin`: how messages name the text. Errors: invalid, with the device, the key, its value and what is allowed.
[[nodiscard]] Result<Machine> machine_from_json(std::string_view text, std::string_view origin);
// Errors: those of machine_from_json(); io if the file cannot be read.
[[nodiscard]] Result<Machine> read_machine(const std::string& file);

}  // namespace shunt::sim
