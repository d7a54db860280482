#include "ops/top_k/top_k.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const std::uint32_t k = attributes.u32(Attr::k);
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_elements(x));
  if (k == 0 || k > x.shape.columns())
    return invalid(fmt::format("k {} must be from 1 to the columns of {}", k, text_of(x)));
  Shape shape = x.shape;
  shape.set(shape.rank() - 1, k);
  return value(DType::I32, shape, x.shape.rank() > 1 ? x.extent : Extent::fixed);
}

// Counts one pass over the row for each index.
Cost cost_of(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = static_cast<double>(call.input(0).shape.elements()) * call.attributes->u32(Attr::k);
  return cost;
}

void make_sample(SampleBuilder& sample) {
  SampleBuilder::Request x = pick_rows(sample);
  x.values = sample.pick({Values::ordinary, Values::ties, Values::special});
  const bool all = sample.pick({false, true});
  sample.set(Attr::k, all ? x.shape.columns() : std::min(x.shape.columns(), 4U));
  sample.add(x);
}

void make_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), bench.sizes().embedding});
  bench.set(Attr::k, std::min(kBenchExperts, bench.sizes().embedding));
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

struct Place {
  double value = 0;
  std::uint32_t index = 0;
};

// Returns whether `a` precedes `b` in the result.
bool precedes(const Place& a, const Place& b) {
  if (std::isnan(a.value) != std::isnan(b.value)) return std::isnan(b.value);
  if (a.value > b.value || a.value < b.value) return a.value > b.value;
  return a.index < b.index;
}

// Each place of the result is the first of the elements after the previous place.
void find_row(const TopKArgs& args, const CpuCall& call, std::uint64_t row) {
  const std::uint64_t begin = row_offset(args.x, row);
  const auto at = [&](std::uint32_t i) {
    return Place{
        load_element(static_cast<DType>(args.x.dtype), call.inputs[0], begin + std::uint64_t{i} * args.x.strides[3]),
        i};
  };
  Place before;
  for (std::uint32_t j = 0; j < args.k; ++j) {
    Place found;
    bool any = false;
    for (std::uint32_t i = 0; i < args.x.extents[3]; ++i) {
      const Place here = at(i);
      if ((j != 0 && !precedes(before, here)) || (any && !precedes(here, found))) continue;
      found = here;
      any = true;
    }
    call.out<std::int32_t>()[row * args.k + j] = static_cast<std::int32_t>(found.index);
    before = found;
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<TopKArgs>();
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.thread, call.threads);
  for (std::uint64_t row = share.begin; row < share.end; ++row) find_row(args, call, row);
  return 0;
}

}  // namespace

TopKArgs top_k_arguments(const OpCall& call) {
  TopKArgs args;
  args.x = strided(call.input(0));
  args.k = call.attributes->u32(Attr::k);
  return args;
}

extern const CpuKernel top_k_scalar{fits_row_arguments, work, write_arguments<top_k_arguments>, run};

extern const OpRule top_k_rule{.shape = result_shape, .cost = cost_of, .sample = make_sample, .bench = make_bench};

}  // namespace shunt
