// Layers of usual models that benchmarks measure besides the cases of bench_case.h. Plain values; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "ops/bench_case.h"

namespace shunt {

struct BenchLayer {
  std::string_view name;
  BenchCase use;
};

// Returns the layers of an op; empty for most.
[[nodiscard]] std::vector<BenchLayer> bench_layers(Op op);

}  // namespace shunt
