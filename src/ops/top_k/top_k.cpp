#include "ops/top_k/top_k.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(DType dtype, std::uint32_t per_place, const Operand& x, const Attributes& attributes) {
  const std::uint32_t k = attributes.u32(Attr::k);
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_elements(x));
  if (k == 0 || k > x.shape.columns())
    return invalid(fmt::format("k {} must be from 1 to the columns of {}", k, text_of(x)));
  Shape shape = x.shape;
  shape.set(shape.rank() - 1, per_place * k);
  return value(dtype, shape, x.shape.rank() > 1 ? x.extent : Extent::fixed);
}

Result<ResultShape> shape_of_indices(InputOperands inputs, const Attributes& attributes) {
  return result_shape(DType::I32, 1, *inputs[0], attributes);
}

Result<ResultShape> shape_of_values(InputOperands inputs, const Attributes& attributes) {
  constexpr std::uint32_t kExact = 1U << 24U;  // F32 has all integers up to here
  const Operand& x = *inputs[0];
  if (x.shape.columns() > kExact)
    return invalid(fmt::format("{} has more than {} columns, and F32 not all of their indices", text_of(x), kExact));
  return result_shape(DType::F32, 2, x, attributes);
}

// Counts one pass over the row for all places: hardly any column is among the largest so far.
Cost cost_of_values(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = static_cast<double>(call.input(0).shape.elements());
  return cost;
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

// The tokens among which a model's next one is chosen.
void make_bench_of_values(BenchBuilder& bench) {
  constexpr std::uint32_t kCandidates = 64;
  bench.add_values({bench.rows(), bench.sizes().vocabulary});
  bench.set(Attr::k, std::min(kCandidates, bench.sizes().vocabulary));
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

struct Place {
  double value = 0;
  std::uint32_t index = 0;
};

// Returns whether `a` precedes `b` in the result.
bool precedes(const Place& a, const Place& b, bool nan_first) {
  if (std::isnan(a.value) != std::isnan(b.value)) return std::isnan(nan_first ? a.value : b.value);
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
  const bool with_values = args.with_values != 0;
  Place before;
  for (std::uint32_t j = 0; j < args.k; ++j) {
    Place found;
    bool any = false;
    for (std::uint32_t i = 0; i < args.x.extents[3]; ++i) {
      const Place here = at(i);
      if ((j != 0 && !precedes(before, here, with_values)) || (any && !precedes(here, found, with_values))) continue;
      found = here;
      any = true;
    }
    if (with_values) {
      call.out<float>()[2 * (row * args.k + j)] = static_cast<float>(found.value);
      call.out<float>()[2 * (row * args.k + j) + 1] = static_cast<float>(found.index);
    } else {
      call.out<std::int32_t>()[row * args.k + j] = static_cast<std::int32_t>(found.index);
    }
    before = found;
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<TopKArgs>();
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) find_row(args, call, row);
  return 0;
}

}  // namespace

TopKArgs top_k_arguments(const OpCall& call) {
  TopKArgs args;
  args.x = strided(call.input(0));
  args.k = call.attributes->u32(Attr::k);
  args.with_values = call.op == Op::top_values ? 1 : 0;
  return args;
}

extern const CpuKernel top_k_scalar{fits_row_arguments, work, write_arguments<top_k_arguments>, run};

extern const OpRule top_k_rule{.shape = shape_of_indices, .cost = cost_of, .sample = make_sample, .bench = make_bench};
extern const OpRule top_values_rule{
    .shape = shape_of_values, .cost = cost_of_values, .sample = make_sample, .bench = make_bench_of_values};

}  // namespace shunt
