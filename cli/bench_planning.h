// Measures planning, for `shunt bench check`. One thread.
#pragma once

#include <functional>

#include "shunt/status.h"

namespace shunt::cli {

// One repetition of a measurement.
using Round = std::function<Result<double>()>;

// Microseconds per op of planning a graph of 10,000 ops for four devices.
[[nodiscard]] Result<Round> planning();
// Nanoseconds per op of finding the plan of a model's step that was planned before. Errors: those of a model's file.
[[nodiscard]] Result<Round> finding_plans();

}  // namespace shunt::cli
