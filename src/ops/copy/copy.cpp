#include "ops/copy/copy.h"

#include <fmt/format.h>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const DType to = attributes.dtype(Attr::to);
  for (const DType dtype : {x.dtype, to})
    if (info_of(dtype).kind == DTypeKind::quantized)
      return invalid(
          fmt::format("converts between dtypes that are not quantized, not {} to {}; quantize and dequantize do",
                      text_of(x), name_of(to)));
  return value(to, x.shape, x.extent);
}

void make_sample(SampleBuilder& sample) {
  SampleBuilder::Request x = pick_rows(sample);
  x.dtype = sample.pick({x.dtype, x.dtype, DType::I32, DType::I8, DType::U32});
  x.values = sample.pick({Values::ordinary, Values::special});
  sample.set(Attr::to, sample.pick({DType::F32, DType::F16, DType::BF16, DType::I32, DType::I8, DType::U32}));
  sample.add(x);
}

void make_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), bench.sizes().embedding});
  bench.set(Attr::to, bench.dtype());
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

int run(const CpuCall& call) {
  const auto& args = call.args<CopyArgs>();
  const DType from = static_cast<DType>(args.x.dtype);
  const DType to = static_cast<DType>(args.to);
  const std::uint64_t bytes = info_of(from).block_bytes;
  const std::uint64_t columns = args.x.extents[3];
  const Range share = share_of(valid_row_count(args.x, *call.parameters) * columns, call.share, call.shares);
  for (std::uint64_t i = share.begin; i < share.end; ++i) {
    const std::uint64_t at = row_offset(args.x, i / columns) + i % columns * args.x.strides[3];
    if (from == to)
      std::memcpy(call.output + i * bytes, call.inputs[0] + at * bytes, bytes);
    else
      store_element(to, call.output, i, load_element(from, call.inputs[0], at));
  }
  return 0;
}

}  // namespace

CopyArgs copy_arguments(const OpCall& call) {
  CopyArgs args;
  args.x = strided(call.input(0));
  args.to = static_cast<std::uint32_t>(call.output->dtype);
  const std::uint32_t bytes = info_of(call.output->dtype).block_bytes;
  const bool is_whole = call.output->shape.columns() * std::uint64_t{bytes} % sizeof(std::uint32_t) == 0;
  const bool is_as_it_is = call.input(0).dtype == call.output->dtype && call.input(0).is_contiguous();
  std::uint32_t strides[1][4];
  std::memcpy(strides[0], args.x.strides, sizeof(args.x.strides));
  merge_axes(args.x, strides, 1);
  std::memcpy(args.x.strides, strides[0], sizeof(args.x.strides));
  if (is_whole && is_as_it_is)
    args.words_of_row = static_cast<std::uint32_t>(args.x.extents[3] * std::uint64_t{bytes} / sizeof(std::uint32_t));
  return args;
}

std::uint64_t whole_fours(const OpCall& call) {
  constexpr std::uint64_t kFour = 4 * sizeof(std::uint32_t);
  return copy_arguments(call).words_of_row == 0 ? 0 : (call.output->span_bytes() + kFour - 1) / kFour;
}

extern const CpuKernel copy_scalar{fits_arguments, work, write_arguments<copy_arguments>, run};

extern const OpRule copy_rule{
    .shape = result_shape, .sample = make_sample, .bench = make_bench, .bench_dtype = DType::F16};

}  // namespace shunt
