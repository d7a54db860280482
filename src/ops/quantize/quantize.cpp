#include "ops/quantize/quantize.h"

#include <fmt/format.h>

#include <cstring>

#include "ops/kernel_arguments.h"
#include "ops/quantize/blocks.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const DType to = attributes.dtype(Attr::to);
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_whole_rows("x", x));
  if (info_of(to).kind != DTypeKind::quantized)
    return invalid(fmt::format("`to` must be a quantized dtype, is {}", name_of(to)));
  return value(to, x.shape, x.extent);
}

void make_sample(SampleBuilder& sample) {
  const DType to = sample.pick_quantized();
  const std::uint32_t columns = sample.pick_columns(to);
  const DType dtype = sample.pick_floating();
  const Entries entries = sample.pick_entries();
  const Shape shape = sample.pick_shape(entries, columns);
  // A block holds consecutive elements, so rows must be contiguous.
  const View view = sample.pick({View::contiguous, View::offset, View::padded});
  sample.set(Attr::to, to);
  sample.add({.dtype = dtype, .shape = shape, .extent = entries.extent, .view = view});
}

void make_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), bench.sizes().embedding});
  bench.set(Attr::to, bench.dtype());
}

Result<ResultShape> dequantize_result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const DType to = attributes.dtype(Attr::to);
  if (info_of(x.dtype).kind != DTypeKind::quantized)
    return invalid(fmt::format("x must be of a quantized dtype, is {}", text_of(x)));
  SHUNT_TRY(need_whole_rows("x", x));
  if (info_of(to).kind != DTypeKind::floating)
    return invalid(fmt::format("`to` must be a floating dtype, is {}", name_of(to)));
  return value(to, x.shape, x.extent);
}

void make_dequantize_sample(SampleBuilder& sample) {
  const DType dtype = sample.pick_quantized();
  const std::uint32_t columns = sample.pick_columns(dtype);
  const Entries entries = sample.pick_entries();
  const Shape shape = sample.pick_shape(entries, columns);
  const View view = sample.pick({View::contiguous, View::offset});
  sample.set(Attr::to, sample.pick_floating());
  sample.add({.dtype = dtype, .shape = shape, .extent = entries.extent, .view = view});
}

void make_dequantize_bench(BenchBuilder& bench) {
  bench.add(Operand::contiguous(bench.dtype(), {bench.rows(), bench.sizes().embedding}));
}

int run(const CpuCall& call) {
  quantize_share(call, decode_row);
  return 0;
}

}  // namespace

CpuWork quantize_work(const OpCall&, std::uint32_t) {
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = kQuantizePiece * sizeof(float)};
}

std::string fits_quantize_arguments(const OpCall& call) {
  const Operand& x = call.input(0);
  const std::uint32_t block = info_of(x.dtype).block_elements;
  for (std::size_t axis = 0; axis + 1 < x.shape.rank(); ++axis)
    if (x.strides[axis] % block != 0) return fmt::format("needs rows of x that begin at a block of {}", block);
  return fits_row_arguments(call);
}

QuantizeArgs quantize_arguments(const OpCall& call) {
  QuantizeArgs args;
  args.x = strided(call.input(0));
  args.to = static_cast<std::uint32_t>(call.output->dtype);
  std::uint32_t strides[1][4];
  std::memcpy(strides[0], args.x.strides, sizeof(args.x.strides));
  merge_axes(args.x, strides, 1);
  std::memcpy(args.x.strides, strides[0], sizeof(args.x.strides));
  return args;
}

extern const CpuKernel quantize_scalar;
const CpuKernel quantize_scalar{fits_quantize_arguments, quantize_work, write_arguments<quantize_arguments>, run};

extern const OpRule quantize_rule{
    .shape = result_shape, .sample = make_sample, .bench = make_bench, .bench_dtype = DType::Q8_0};
extern const OpRule dequantize_rule{.shape = dequantize_result_shape,
                                    .sample = make_dequantize_sample,
                                    .bench = make_dequantize_bench,
                                    .bench_dtype = DType::Q8_0};

}  // namespace shunt
