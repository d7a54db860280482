#include "ops/reduce/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_elements(x));
  return one_of_each_row(x.dtype, x);
}

void make_sample(SampleBuilder& sample) { sample.add(pick_rows(sample)); }

Result<ResultShape> dot_result_shape(InputOperands inputs, const Attributes& attributes) {
  SHUNT_TRY(need_floating("b", *inputs[1]));
  if (!is_suffix(inputs[1]->shape, inputs[0]->shape))
    return invalid(fmt::format("b {} does not equal the last axes of a {}", text_of(*inputs[1]), text_of(*inputs[0])));
  return result_shape(inputs, attributes);
}

void make_dot_sample(SampleBuilder& sample) {
  const SampleBuilder::Request a = pick_rows(sample);
  sample.add(a);
  add_broadcast(sample, a, false, Values::ordinary);
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

double reduced(const ReduceArgs& args, const CpuCall& call, std::uint64_t row) {
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  const std::uint64_t b_begin = row_offset(args.x.extents, args.b_strides, row);
  double sum = 0;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::uint64_t i = 0; i < columns; ++i) {
    double x = load_element(static_cast<DType>(args.x.dtype), call.inputs[0], begin + i * args.x.strides[3]);
    if (args.kind == kReduceDot)
      x *= load_element(static_cast<DType>(args.b_dtype), call.inputs[1], b_begin + i * args.b_strides[3]);
    sum += x;
    if (x > largest || std::isnan(x)) largest = x;
    if (std::isnan(largest)) break;
  }
  if (args.kind == kReduceMax) return largest;
  return args.kind == kReduceMean ? sum / static_cast<double>(columns) : sum;
}

int run(const CpuCall& call) {
  const auto& args = call.args<ReduceArgs>();
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row)
    store_element(static_cast<DType>(args.x.dtype), call.output, row, reduced(args, call, row));
  return 0;
}

std::uint32_t kind_of(Op op) {
  if (op == Op::reduce_max) return kReduceMax;
  if (op == Op::reduce_mean) return kReduceMean;
  return op == Op::dot ? kReduceDot : kReduceSum;
}

}  // namespace

ReduceArgs reduce_arguments(const OpCall& call) {
  ReduceArgs args;
  args.x = strided(call.input(0));
  args.kind = kind_of(call.op);
  if (call.op == Op::dot) {
    const StridedTensor b = strided_like(call.input(1), call.input(0));
    args.b_dtype = b.dtype;
    std::ranges::copy(b.strides, args.b_strides);
  }
  return args;
}

extern const CpuKernel reduce_scalar{fits_row_arguments, work, write_arguments<reduce_arguments>, run};

extern const OpRule reduce_rule{.shape = result_shape, .sample = make_sample, .bench = bench_rows};
extern const OpRule dot_rule{.shape = dot_result_shape, .sample = make_dot_sample, .bench = bench_rows};

}  // namespace shunt
