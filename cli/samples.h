// How the bench commands print repeated measurements.
#pragma once

#include "output.h"
#include "run/measure/samples.h"

namespace shunt::cli {

[[nodiscard]] inline Json json_of(const Samples& samples) {
  return {{"median", samples.median()}, {"min", samples.least()}, {"max", samples.most()}};
}

}  // namespace shunt::cli
