#include "ops/attention/attention_layers.h"

namespace shunt {
namespace {

struct ContextSizes {
  std::string_view name;
  DType state_dtype;
  std::uint32_t rows;
  std::uint32_t depth;
};

constexpr ContextSizes kContexts[] = {
#define SHUNT_LAYER(name, state_dtype, rows, depth) {#name, DType::state_dtype, rows, depth},
#include "ops/attention/attention_layers.def"
};

BenchCase use_of(const ContextSizes& sizes) {
  // Benchmarks let tokens see half of a context.
  const OpSizes model{.heads = 32, .kv_heads = 8, .head_dim = 64, .page_tokens = 32, .context = 2 * sizes.depth};
  BenchBuilder builder(Op::attention, model, sizes.rows, sizes.state_dtype);
  info_of(Op::attention).rule->bench(builder);
  BenchCase operands = std::move(builder).finish();
  operands.output = BenchBuilder::values({sizes.rows, model.heads, model.head_dim});
  BenchCase use = bench_case_of(BenchOperands(operands).call());
  use.dtype = sizes.state_dtype;
  return use;
}

}  // namespace

std::vector<BenchLayer> attention_layers() {
  std::vector<BenchLayer> layers;
  for (const ContextSizes& sizes : kContexts) layers.push_back({sizes.name, use_of(sizes)});
  return layers;
}

}  // namespace shunt
