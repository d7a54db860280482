// Confirms choices of kernels in whole steps of a model. A kernel that is faster alone may be slower among others: they
// share launches, caches and clocks. A plain function; one thread.
#pragma once

#include <vector>

#include "models/model.h"
#include "models/step_bench.h"
#include "run/measure/kernel_comparison.h"

namespace shunt::models {

// Runs steps with the choices of each number of tokens and kernel, and in turns with those steps without them. Returns
// the comparisons, with the kernel by rule in place of choices with which steps took longer. REQUIRES: the runtime has
// one device, which was compared. Errors: interrupted if `progress` returned false; those of the device, such as
// out_of_memory if the model does not fit there.
[[nodiscard]] Result<std::vector<KernelComparison>> confirm_kernels(const Model& model, const Runtime& runtime,
                                                                    Numerics numerics,
                                                                    std::vector<KernelComparison> comparisons,
                                                                    const StepProgress& progress);

}  // namespace shunt::models
