#include "ops/rotary/rotary.h"

#include <fmt/format.h>

#include "ops/kernel_arguments.h"
#include "ops/rotary/reference.h"
#include "ops/rules.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_rotary(x, attributes));
  SHUNT_TRY(need("positions", *inputs[1], DType::I32, Shape{x.shape[0]}));
  if (present(inputs, 2)) {
    const std::uint32_t dims = attributes.u32(Attr::rotary_dims);
    SHUNT_TRY(need("factors", *inputs[2], DType::F32, Shape{(dims == 0 ? x.shape[2] : dims) / 2}));
  }
  return value(x.dtype, x.shape, x.extent);
}

void make_sample(SampleBuilder& sample) {
  const DType dtype = sample.pick_floating();
  const Entries entries = sample.pick_entries();
  const std::uint32_t heads = sample.pick({3U, 1U});
  const std::uint32_t head_dim = sample.pick({64U, 2U, 80U, 34U});
  const View view = sample.pick_view();
  const bool has_factors = sample.pick({false, true});
  set_rotary_attributes(sample, head_dim);
  sample.add({.dtype = dtype, .shape = {entries.count, heads, head_dim}, .extent = entries.extent, .view = view});
  sample.add_indices({entries.count}, entries.extent, sample.indices(entries.count, 4000));
  if (!has_factors) return sample.add_absent();
  // The shape rule requires half of the rotated dims.
  const std::uint32_t dims = head_dim / 4 * 2;
  sample.set(Attr::rotary_dims, dims);
  sample.add({.shape = {(dims == 0 ? head_dim : dims) / 2}});
}

void make_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), bench.sizes().heads, bench.sizes().head_dim});
  bench.add_indices({bench.rows()});
}

BenchIndices bench_indices(const BenchCase& use, std::size_t) { return {.step = 1, .modulus = use.shape(1)[0]}; }

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

int run(const CpuCall& call) {
  const auto& args = call.args<RotaryArgs>();
  const std::uint64_t head_dim = args.x.extents[3];
  const std::byte* factors = args.has_factors != 0 ? call.inputs[2] : nullptr;
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) {
    const std::uint64_t token = row / args.x.extents[2];
    const double position = load_element(DType::I32, call.inputs[1], token * args.position_stride);
    rotate_head(args, call.inputs[0], row_offset(args.x, row), position, factors, [&](std::uint32_t i, double value) {
      store_element(static_cast<DType>(args.x.dtype), call.output, row * head_dim + i, value);
    });
  }
  return 0;
}

}  // namespace

RotaryArgs rotary_arguments(const OpCall& call, const Operand& x, const Operand& positions, const Operand* factors) {
  RotaryArgs args;
  args.x = strided(x);
  const std::uint32_t dims = call.attributes->u32(Attr::rotary_dims);
  args.dims = dims == 0 ? x.shape.columns() : dims;
  args.halves = call.attributes->u32(Attr::rotary_halves);
  args.base = call.attributes->f32(Attr::rotary_base);
  args.position_stride = static_cast<std::uint32_t>(positions.strides[0]);
  if (factors != nullptr) {
    args.has_factors = 1;
    args.factor_stride = static_cast<std::uint32_t>(factors->strides[0]);
  }
  return args;
}

RotaryArgs rotary_arguments(const OpCall& call) {
  return rotary_arguments(call, call.input(0), call.input(1), call.has_input(2) ? &call.input(2) : nullptr);
}

extern const CpuKernel rotary_scalar{
    fits_arguments, work, write_arguments<static_cast<RotaryArgs (*)(const OpCall&)>(rotary_arguments)>, run};

Status need_rotary(const Operand& x, const Attributes& attributes) {
  SHUNT_TRY(need_floating("x", x));
  SHUNT_TRY(need_rank("x", x, 3));
  const std::uint32_t dims = attributes.u32(Attr::rotary_dims);
  const std::uint32_t head_dim = x.shape[2];
  if (dims > head_dim || dims % 2 != 0 || (dims == 0 && head_dim % 2 != 0))
    return invalid(fmt::format("rotary_dims {} must be even and at most the head size {}", dims, head_dim));
  if (!(attributes.f32(Attr::rotary_base) > 0))
    return invalid(fmt::format("rotary_base {} must be positive", attributes.f32(Attr::rotary_base)));
  if (attributes.u32(Attr::rotary_halves) > 1) return invalid("rotary_halves must be 0 or 1");
  return {};
}

void set_rotary_attributes(SampleBuilder& sample, std::uint32_t head_dim) {
  sample.set(Attr::rotary_halves, sample.pick({0U, 1U}));
  sample.set(Attr::rotary_base, sample.pick({10000.0F, 500000.0F}));
  sample.set(Attr::rotary_dims, sample.pick({0U, head_dim / 4 * 2}));
}

extern const OpRule rotary_rule{
    .shape = result_shape, .sample = make_sample, .bench = make_bench, .bench_indices = bench_indices};

}  // namespace shunt
