// Measures what whole steps of a model take, beside the sum of what their ops do.
//
// An op is measured as it waits for the one before; in a step not all do, and caches hold other things. A plain
// function; one thread.
#pragma once

#include <functional>

#include "models/model.h"
#include "plan/costs/profile.h"

namespace shunt::models {

// Called before each step, and while the context is filled, with how many there were, and will be; false ends it.
using StepProgress = std::function<bool(std::size_t done, std::size_t count)>;

// Runs steps of one token, and of as many tokens as take a second at most, and returns `profile` with their ratios.
// Times are by the device's own clock. REQUIRES: the runtime has one device, of which the profile is, and plans with
// it, with ratios of 1. Errors: interrupted where progress ended it; unsupported where 32 tokens should take more than
// a second; those of the device, such as out_of_memory where the model does not fit there.
[[nodiscard]] Result<DeviceProfile> measure_steps(const Model& model, const Runtime& runtime, DeviceProfile profile,
                                                  const StepProgress& progress);

}  // namespace shunt::models
