// The JSON answers of commands, which the page in a browser uses too. Plain functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/evaluate.h"
#include "models/generate.h"
#include "output.h"
#include "run/verify/conformance.h"
#include "shunt/devices.h"

namespace shunt::cli {

// shunt devices
using FreeMemory = std::map<std::string, std::uint64_t>;
[[nodiscard]] std::vector<DeviceInfo> devices_of(std::span<const ApiReport> found);
// The free memory that the device can use, at most its own size; nullopt if unknown.
[[nodiscard]] std::optional<std::uint64_t> available_to(const DeviceInfo& device, const FreeMemory& free);
[[nodiscard]] Json to_json(std::span<const ApiReport> found);

// shunt run. The context of one generation.
struct GenerationContext {
  std::span<const Token> prompt;
  std::uint64_t seed = 0;
  std::uint32_t context = 0;
  double load_s = 0;
  std::vector<std::string> devices;  // those that computed
};
[[nodiscard]] Json to_json(const Generation& generation, const GenerationContext& context);
// Per second; 0 if no time has passed.
[[nodiscard]] double rate(std::size_t count, double seconds);
// The ids of the devices that have work in any of the plans, in the order of the plans.
[[nodiscard]] std::vector<std::string> working_devices(std::span<const Plan* const> plans);

// shunt eval
[[nodiscard]] Json to_json(const models::Evaluation& evaluation, bool every);
[[nodiscard]] Json to_json(const models::Agreement& agreement);

// shunt verify
[[nodiscard]] Json to_json(const ConformanceReport& report, const ConformanceOptions& options,
                           std::span<Device* const> devices);
// The command that runs a failed case again.
[[nodiscard]] std::string again(const ConformanceFailure& failure, std::uint64_t seed);

}  // namespace shunt::cli
