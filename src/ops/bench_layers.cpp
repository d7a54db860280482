#include "ops/bench_layers.h"

#include "ops/attention/attention_layers.h"
#include "ops/conv2d/conv2d_layers.h"

namespace shunt {
namespace {

// THE table of ops with layers.
struct LayerTable {
  Op op;
  std::vector<BenchLayer> (*layers)();
};
constexpr LayerTable kLayerTables[] = {{Op::attention, attention_layers}, {Op::conv2d, conv_layers}};

}  // namespace

std::vector<BenchLayer> bench_layers(Op op) {
  for (const LayerTable& table : kLayerTables)
    if (table.op == op) return table.layers();
  return {};
}

}  // namespace shunt
