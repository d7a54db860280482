// Chooses, of the APIs that offer a GPU, the one predicted to be faster for a client's work.
//
// Only devices of a default selection are chosen among (OpenedDevices::spares()). GPUs that the same APIs offer use the
// same one. Plain function; one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "run/bucket_planner.h"
#include "run/pool/device_pool.h"

namespace shunt {

using PlannerFor = std::function<std::unique_ptr<BucketPlanner>(const DeviceSet& set)>;

// Plans the work through each API, and returns the planner for the devices that the pool uses from now on. Each time
// counts with the margin that protects measured devices from priors (margin_or_default()). Among equals, the API in use
// stays.
[[nodiscard]] std::unique_ptr<BucketPlanner> choose_apis(DevicePool& device_pool, std::optional<double> margin,
                                                         const PlannerFor& planner_for);

}  // namespace shunt
