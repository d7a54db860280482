#include "ops/take/take.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& ids = *inputs[1];
  SHUNT_TRY(need_floating("x", x));
  if (ids.dtype != DType::I32) return invalid(fmt::format("ids must be I32, are {}", text_of(ids)));
  bool alike = x.shape.rank() == ids.shape.rank() && x.shape.rank() != 0;
  for (std::size_t axis = 0; alike && axis + 1 < x.shape.rank(); ++axis) alike = x.shape[axis] == ids.shape[axis];
  if (!alike) return invalid(fmt::format("ids {} must have the rows of x {}", text_of(ids), text_of(x)));
  return value(x.dtype, ids.shape, x.shape.rank() > 1 ? x.extent : Extent::fixed);
}

Cost cost_of(const OpCall& call) {
  const double written = bytes_of(*call.output);
  return {.flops = static_cast<double>(call.output->shape.elements()),
          .bytes_read = written + bytes_of(call.input(1)),
          .bytes_written = written};
}

void make_sample(SampleBuilder& sample) {
  const SampleBuilder::Request x = pick_rows(sample);
  const std::uint32_t count = sample.pick({4U, 1U, 70U});
  sample.add(x);
  Shape shape = x.shape;
  shape.set(shape.rank() - 1, count);
  // One of the indices is out of range.
  sample.add_indices(shape, x.extent,
                     sample.indices(static_cast<std::uint32_t>(shape.elements()), x.shape.columns() + 1));
}

void make_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), bench.sizes().embedding});
  bench.add_indices({bench.rows(), kBenchExperts});
}

BenchIndices bench_indices(const BenchCase& use, std::size_t) {
  return {.first = 1, .step = kBenchStep, .modulus = use.shape(0).columns()};
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

int run(const CpuCall& call) {
  const auto& args = call.args<TakeArgs>();
  const DType dtype = static_cast<DType>(args.x.dtype);
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) {
    const std::uint64_t begin = row_offset(args.x, row);
    const std::int32_t* const ids = call.in<std::int32_t>(1) + row_offset(args.x.extents, args.id_strides, row);
    for (std::uint64_t j = 0; j < args.count; ++j) {
      const std::int32_t id = ids[j * args.id_strides[3]];
      const bool there = id >= 0 && static_cast<std::uint32_t>(id) < args.x.extents[3];
      store_element(dtype, call.output, row * args.count + j,
                    there ? load_element(dtype, call.inputs[0],
                                         begin + std::uint64_t{static_cast<std::uint32_t>(id)} * args.x.strides[3])
                          : 0);
    }
  }
  return 0;
}

}  // namespace

TakeArgs take_arguments(const OpCall& call) {
  TakeArgs args;
  args.x = strided(call.input(0));
  std::ranges::copy(strided_like(call.input(1), call.input(0)).strides, args.id_strides);
  args.count = call.input(1).shape.columns();
  return args;
}

extern const CpuKernel take_scalar{fits_row_arguments, work, write_arguments<take_arguments>, run};

extern const OpRule take_rule{
    .shape = result_shape, .cost = cost_of, .sample = make_sample, .bench = make_bench, .bench_indices = bench_indices};

}  // namespace shunt
