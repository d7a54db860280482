// Steps of attention over long contexts that benchmarks measure (attention_layers.def). Plain values; any thread.
#pragma once

#include <vector>

#include "ops/bench_layers.h"

namespace shunt {

[[nodiscard]] std::vector<BenchLayer> attention_layers();

}  // namespace shunt
