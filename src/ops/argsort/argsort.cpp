#include "ops/argsort/argsort.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_elements(x));
  return value(DType::I32, x.shape, x.shape.rank() > 1 ? x.extent : Extent::fixed);
}

// Counts one comparison for each element and halving of its row.
Cost cost_of(const OpCall& call) {
  Cost cost = rowwise_cost(call);
  cost.flops *= std::log2(1.0 + call.input(0).shape.columns());
  return cost;
}

void make_sample(SampleBuilder& sample) {
  SampleBuilder::Request x = pick_rows(sample);
  x.values = sample.pick({Values::ordinary, Values::ties, Values::special});
  sample.add(x);
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void sort_row(const ArgsortArgs& args, const CpuCall& call, std::uint64_t row) {
  const std::uint64_t begin = row_offset(args.x, row);
  const auto at = [&](std::int32_t i) {
    const std::uint64_t element = begin + static_cast<std::uint64_t>(i) * args.x.strides[3];
    return load_element(static_cast<DType>(args.x.dtype), call.inputs[0], element);
  };
  const auto precedes = [&](std::int32_t i, std::int32_t j) {
    const double a = at(i);
    const double b = at(j);
    if (std::isnan(a) != std::isnan(b)) return std::isnan(b);
    if (a < b || b < a) return a < b;
    return i < j;
  };
  const std::span ids(call.out<std::int32_t>() + row * args.x.extents[3], args.x.extents[3]);
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::sort(ids, precedes);
}

int run(const CpuCall& call) {
  const auto& args = call.args<ArgsortArgs>();
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) sort_row(args, call, row);
  return 0;
}

}  // namespace

ArgsortArgs argsort_arguments(const OpCall& call) { return {.x = strided(call.input(0))}; }

extern const OpRule argsort_rule{.shape = result_shape, .cost = cost_of, .sample = make_sample, .bench = bench_rows};
extern const CpuKernel argsort_scalar{fits_row_arguments, work, write_arguments<argsort_arguments>, run};

}  // namespace shunt
