#include "ops/rotary/rotary.h"

#include "ops/kernel_arguments.h"
#include "ops/rotary/reference.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

int run(const CpuCall& call) {
  const auto& args = call.args<RotaryArgs>();
  const std::uint64_t head_dim = args.x.extents[3];
  const std::byte* factors = args.has_factors != 0 ? call.inputs[2] : nullptr;
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.thread, call.threads);
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

}  // namespace shunt
