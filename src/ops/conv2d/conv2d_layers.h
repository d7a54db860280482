// The convolutions of usual image models that benchmarks measure (conv2d_layers.def). Plain values; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "ops/bench_case.h"

namespace shunt {

struct ConvLayer {
  std::string_view name;
  BenchCase use;
};

[[nodiscard]] std::vector<ConvLayer> conv_layers();

}  // namespace shunt
