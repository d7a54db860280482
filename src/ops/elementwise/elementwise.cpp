#include "ops/elementwise/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/elements.h"
#include "ops/elementwise/expressions.h"
#include "ops/elementwise/prelude_scalar.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace scalar_prelude::expressions {
namespace {

#define SHUNT_VALUE Real
#define SHUNT_FUNCTION inline
#define SHUNT_ELEMENTWISE(...) SHUNT_ELEMENTWISE_FUNCTION(__VA_ARGS__)
#include "ops/ops.def"
#undef SHUNT_VALUE
#undef SHUNT_FUNCTION

}  // namespace
}  // namespace scalar_prelude::expressions

namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& first = *inputs[0];
  Extent extent = first.extent;
  for (const Operand* input : inputs) {
    SHUNT_TRY(need_floating("operand", *input));
    if (!is_suffix(input->shape, first.shape))
      return invalid(fmt::format("{} does not equal the last axes of {}", text_of(*input), text_of(first)));
  }
  return value(first.dtype, first.shape, extent);
}

void make_sample(SampleBuilder& sample) {
  SampleBuilder::Request first = pick_rows(sample);
  // In F32, the sine of a huge number is useless: leave those out.
  const bool turns = sample.row().expression.contains("sin(") || sample.row().expression.contains("cos(");
  first.values = sample.pick({Values::ordinary, turns ? Values::extreme : Values::special});
  // Covers vectors too, of columns or of entries.
  const bool is_vector = sample.pick({false, false, true});
  if (is_vector) first.shape = Shape{first.shape[0]};
  sample.add(first);
  // The reference of a fused row rounds intermediate results, and one rounded to zero must not meet an infinity.
  const Values others = sample.row().is_fused() ? Values::ordinary : first.values;
  for (std::size_t input = 1; input < sample.row().inputs.size(); ++input) add_broadcast(sample, first, false, others);
  if (sample.takes(Attr::factor)) sample.set(Attr::factor, sample.pick({0.5F, -3.0F}));
  if (sample.takes(Attr::cap)) sample.set(Attr::cap, sample.pick({30.0F, 0.75F}));
  if (sample.takes(Attr::low)) sample.set(Attr::low, sample.pick({-0.5F, -3.40282347e38F}));
  if (sample.takes(Attr::high)) sample.set(Attr::high, sample.pick({1.25F, 3.40282347e38F}));
  if (sample.takes(Attr::limit)) sample.set(Attr::limit, sample.pick({7.0F, 0.5F}));
  if (sample.takes(Attr::alpha)) sample.set(Attr::alpha, sample.pick({1.702F, 1.0F}));
}

void make_bench(BenchBuilder& bench) {
  bench.fill_up(BenchBuilder::values({bench.rows(), bench.sizes().feed_forward}));
}

using scalar_prelude::Real;
using Expression = Real (*)(const Real* operand, const Real* attribute);

// REQUIRES: op is an elementwise row.
Expression expression_of(Op op) {
  switch (op) {
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) \
  case Op::name:                                                           \
    return scalar_prelude::expressions::row_##name;
#include "ops/ops.def"
    default:
      return nullptr;
  }
}

std::string supports(const OpCall& call) { return fits_arguments(call); }

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

int run(const CpuCall& call) {
  const auto& args = call.args<ElementwiseArgs>();
  const Expression expression = expression_of(static_cast<Op>(args.op));
  std::array<Real, kMaxElementwiseOperands> attributes;
  for (std::size_t i = 0; i < attributes.size(); ++i) attributes[i] = args.attributes[i];
  std::array<Real, kMaxElementwiseOperands> values;
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t valid = valid_row_count(args.x, *call.parameters) * columns;
  const Range share = share_of(valid, call.share, call.shares);
  for (std::uint64_t i = share.begin; i < share.end; ++i) {
    for (std::uint32_t k = 0; k < args.operands; ++k) {
      const std::uint64_t at =
          row_offset(args.x.extents, args.strides[k], i / columns) + i % columns * args.strides[k][3];
      values[k] = Real(load_element(static_cast<DType>(args.dtypes[k]), call.inputs[k], at));
    }
    store_element(static_cast<DType>(args.x.dtype), call.output, i, expression(values.data(), attributes.data()).value);
  }
  return 0;
}

}  // namespace

ElementwiseArgs elementwise_arguments(const OpCall& call) {
  ElementwiseArgs args;
  const OpInfo& info = info_of(call.op);
  args.x = strided(call.input(0));
  args.op = static_cast<std::uint32_t>(call.op);
  args.operands = static_cast<std::uint32_t>(call.inputs.size());
  for (std::uint32_t i = 0; i < args.operands; ++i) {
    const StridedTensor operand = strided_like(call.input(i), call.input(0));
    std::ranges::copy(operand.strides, args.strides[i]);
    args.dtypes[i] = operand.dtype;
  }
  for (std::size_t i = 0; i < info.attributes.size(); ++i)
    args.attributes[i] = call.attributes->f32(info.attributes[i]);
  merge_axes(args.x, args.strides, args.operands);
  std::ranges::copy(args.strides[0], args.x.strides);
  return args;
}

extern const CpuKernel elementwise_scalar{supports, work, write_arguments<elementwise_arguments>, run};

extern const OpRule elementwise_rule{.shape = result_shape, .sample = make_sample, .bench = make_bench};

}  // namespace shunt
