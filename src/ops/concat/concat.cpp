#include "ops/concat/concat.h"

#include <fmt/format.h>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& a = *inputs[0];
  const Operand& b = *inputs[1];
  const std::uint32_t axis = attributes.u32(Attr::axis);
  if (a.dtype != b.dtype || info_of(a.dtype).kind == DTypeKind::quantized)
    return invalid(fmt::format("a {} and b {} must be of one dtype that is not quantized", text_of(a), text_of(b)));
  if (axis >= a.shape.rank()) return invalid(fmt::format("axis {} out of range for a {}", axis, text_of(a)));
  Shape shape = a.shape;
  if (b.shape.rank() == shape.rank()) shape.set(axis, b.shape[axis]);
  if (shape != b.shape)
    return invalid(fmt::format("a {} and b {} differ in more than axis {}", text_of(a), text_of(b), axis));
  if (a.extent != b.extent) return invalid("axis 0 of a and b must be counted by the same");
  if (axis == 0 && a.extent != Extent::fixed)
    return invalid("axis 0 of the first input varies with the number of tokens; nothing can follow it");
  const std::uint64_t together = std::uint64_t{a.shape[axis]} + b.shape[axis];
  if (together > std::numeric_limits<std::uint32_t>::max())
    return invalid(fmt::format("axis {} of the result would have {} entries", axis, together));
  shape.set(axis, static_cast<std::uint32_t>(together));
  return value(a.dtype, shape, a.extent);
}

void make_sample(SampleBuilder& sample) {
  const DType floating = sample.pick_floating();
  const std::uint32_t columns = sample.pick_columns(floating);
  const Entries entries = sample.pick_entries();
  const Shape shape = sample.pick_shape(entries, columns);
  const View view = sample.pick_view();
  const View second_view = sample.pick_view();
  const DType dtype = sample.pick({floating, floating, DType::I32, DType::I8, DType::U32});
  // Axis 0 of a bucket cannot grow.
  const bool outermost = sample.pick({false, true}) && entries.extent == Extent::fixed;
  const bool innermost = sample.pick({false, true});
  const std::uint32_t axis = outermost ? 0 : innermost ? shape.rank() - 1 : 1;
  Shape second = shape;
  second.set(axis, shape[axis] + 2);
  sample.set(Attr::axis, axis);
  sample.add({.dtype = dtype, .shape = shape, .extent = entries.extent, .view = view});
  sample.add({.dtype = dtype, .shape = second, .extent = entries.extent, .view = second_view});
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void copy_rows(const ConcatArgs& args, const CpuCall& call, bool of_b) {
  const StridedTensor& from = of_b ? args.b : args.a;
  const DType dtype = static_cast<DType>(from.dtype);
  const Range rows = share_of(valid_row_count(from, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row)
    for (std::uint64_t column = 0; column < from.extents[3]; ++column)
      store_element(dtype, call.output, concat_target(args, of_b, row) + column,
                    load_element(dtype, call.inputs[of_b ? 1 : 0], row_offset(from, row) + column * from.strides[3]));
}

int run(const CpuCall& call) {
  for (const bool of_b : {false, true}) copy_rows(call.args<ConcatArgs>(), call, of_b);
  return 0;
}

}  // namespace

ConcatArgs concat_arguments(const OpCall& call) {
  ConcatArgs args;
  args.a = strided(call.input(0));
  args.b = strided(call.input(1));
  args.axis = args.a.first_axis + call.attributes->u32(Attr::axis);
  return args;
}

extern const CpuKernel concat_scalar{fits_arguments, work, write_arguments<concat_arguments>, run};

extern const OpRule concat_rule{.shape = result_shape, .sample = make_sample, .bench = bench_rows};

}  // namespace shunt
