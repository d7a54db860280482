#include "ops/gather/gather.h"

#include <fmt/format.h>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& ids = *inputs[1];
  SHUNT_TRY(need_rank("x", x, 2));
  SHUNT_TRY(need_rank("ids", ids, 1));
  if (ids.dtype != DType::I32) return invalid(fmt::format("ids must be I32, are {}", text_of(ids)));
  if (info_of(x.dtype).kind == DTypeKind::integer) return invalid(fmt::format("x must not be {}", text_of(x)));
  return value(DType::F32, Shape{ids.shape[0], x.shape[1]}, ids.extent);
}

Cost cost_of(const OpCall& call) {
  const Operand& x = call.input(0);
  const double written = bytes_of(*call.output);
  const double row_share = x.shape[0] == 0 ? 0 : static_cast<double>(call.output->shape[0]) / x.shape[0];
  return {.flops = static_cast<double>(call.output->shape.elements()),
          .bytes_read = bytes_of(x) * std::min(row_share, 1.0),
          .bytes_written = written};
}

void make_sample(SampleBuilder& sample) {
  const DType dtype = sample.pick_weight();
  const std::uint32_t columns = sample.pick_columns(dtype);
  const Entries ids = sample.pick_entries();
  const std::uint32_t rows = sample.pick_weight_rows({37U, 1U});
  const View view = sample.pick({View::contiguous, View::offset});
  sample.add({.dtype = dtype, .shape = {rows, columns}, .kind = TensorKind::weight, .view = view});
  sample.add_indices({ids.count}, ids.extent, sample.indices(ids.count, rows));
}

void make_bench(BenchBuilder& bench) {
  bench.add(BenchBuilder::weight(bench.dtype(), {bench.sizes().vocabulary, bench.sizes().embedding}));
  bench.add_indices({bench.rows()});
}

BenchIndices bench_indices(const BenchCase& use, std::size_t) {
  return {.first = 1, .step = kBenchStep, .modulus = use.shape(0)[0]};
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void widen_row(const GatherArgs& args, const CpuCall& call, std::uint64_t from, std::uint64_t to) {
  const DType dtype = static_cast<DType>(args.dtype);
  const DTypeInfo& info = info_of(dtype);
  const std::uint64_t begin = from * args.strides[0];
  if (info.kind == DTypeKind::quantized || args.strides[1] == 1) {
    decode_row(dtype, call.inputs[0] + begin / info.block_elements * info.block_bytes, args.columns,
               call.out<float>() + to * args.columns);
    return;
  }
  for (std::uint64_t i = 0; i < args.columns; ++i)
    store_element(DType::F32, call.output, to * args.columns + i,
                  load_element(dtype, call.inputs[0], begin + i * args.strides[1]));
}

int run(const CpuCall& call) {
  const auto& args = call.args<GatherArgs>();
  const std::uint32_t valid = valid_rows(args.ids, static_cast<Extent>(args.extent), *call.parameters);
  const Range share = share_of(valid, call.share, call.shares);
  int code = 0;
  for (std::uint64_t i = share.begin; i < share.end; ++i) {
    const std::int32_t id = call.in<std::int32_t>(1)[i * args.id_stride];
    if (id < 0 || static_cast<std::uint32_t>(id) >= args.rows)
      code = kGatherIdOutOfRange;
    else
      widen_row(args, call, static_cast<std::uint32_t>(id), i);
  }
  return code;
}

}  // namespace

std::string fits_gather_arguments(const OpCall& call) {
  const Operand& x = call.input(0);
  const DTypeInfo& info = info_of(x.dtype);
  if (info.kind == DTypeKind::quantized && (!x.has_contiguous_rows() || x.strides[0] % info.block_elements != 0))
    return fmt::format("needs rows of x that are whole blocks of {}", info.name);
  return fits_arguments(call);
}

GatherArgs gather_arguments(const OpCall& call) {
  const Operand& x = call.input(0);
  const Operand& ids = call.input(1);
  return {.rows = x.shape[0],
          .columns = x.shape[1],
          .strides = {static_cast<std::uint32_t>(x.strides[0]), static_cast<std::uint32_t>(x.strides[1])},
          .dtype = static_cast<std::uint32_t>(x.dtype),
          .ids = ids.shape[0],
          .id_stride = static_cast<std::uint32_t>(ids.strides[0]),
          .extent = static_cast<std::uint32_t>(ids.extent)};
}

extern const CpuKernel gather_scalar{fits_gather_arguments, work, write_arguments<gather_arguments>, run};

extern const OpRule gather_rule{.shape = result_shape,
                                .cost = cost_of,
                                .sample = make_sample,
                                .bench = make_bench,
                                .bench_dtype = DType::Q8_0,
                                .bench_indices = bench_indices};

}  // namespace shunt
