// Measures how long whole steps of a model take, compared with the sum of their ops.
//
// An op is measured while it waits for the op before it. In a step not all ops wait, and caches hold other data. A
// plain function; one thread.
#pragma once

#include "models/model.h"
#include "models/step_bench.h"
#include "plan/costs/profile.h"

namespace shunt::models {

// Runs steps of one token and steps of as many tokens as take at most a second. Returns `profile` with their ratios.
// Times come from the device's own clock. REQUIRES: the runtime has one device, `profile` is that device's, and the
// runtime plans with it at ratios of 1. Errors: interrupted if `progress` returned false; unsupported if 32 tokens are
// predicted to take more than a second; those of the device, such as out_of_memory if the model does not fit there.
[[nodiscard]] Result<DeviceProfile> measure_steps(const Model& model, const Runtime& runtime, Numerics numerics,
                                                  DeviceProfile profile, const StepProgress& progress);

}  // namespace shunt::models
