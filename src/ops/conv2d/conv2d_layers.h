// The convolutions of usual image models that benchmarks measure (conv2d_layers.def). Plain values; any thread.
#pragma once

#include <vector>

#include "ops/bench_layers.h"

namespace shunt {

[[nodiscard]] std::vector<BenchLayer> conv_layers();

}  // namespace shunt
