#include "ops/argmax/argmax.h"

#include <cmath>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_elements(x));
  return one_of_each_row(DType::I32, x);
}

void make_sample(SampleBuilder& sample) {
  SampleBuilder::Request x = pick_rows(sample);
  x.values = sample.pick({Values::ordinary, Values::ties});
  sample.add(x);
}

void make_bench(BenchBuilder& bench) { bench.add_values({bench.rows(), bench.sizes().vocabulary}); }

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

int run(const CpuCall& call) {
  const auto& args = call.args<ArgmaxArgs>();
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) {
    const std::uint64_t begin = row_offset(args.x, row);
    double largest = std::nan("");
    std::uint32_t place = 0;
    for (std::uint32_t i = 0; i < args.x.extents[3]; ++i) {
      const double value =
          load_element(static_cast<DType>(args.x.dtype), call.inputs[0], begin + std::uint64_t{i} * args.x.strides[3]);
      if (value > largest || (std::isnan(largest) && !std::isnan(value))) {
        largest = value;
        place = i;
      }
    }
    call.out<std::int32_t>()[row] = static_cast<std::int32_t>(place);
  }
  return 0;
}

}  // namespace

ArgmaxArgs argmax_arguments(const OpCall& call) { return {.x = strided(call.input(0))}; }

extern const CpuKernel argmax_scalar{fits_row_arguments, work, write_arguments<argmax_arguments>, run};

extern const OpRule argmax_rule{.shape = result_shape, .sample = make_sample, .bench = make_bench};

}  // namespace shunt
