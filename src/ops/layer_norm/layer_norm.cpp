#include "ops/layer_norm/layer_norm.h"

#include <cmath>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void normalize_row(const LayerNormArgs& args, const CpuCall& call, std::uint64_t row) {
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  const auto x = [&](std::uint64_t i) { return load_element(dtype, call.inputs[0], begin + i * args.x.strides[3]); };
  double mean = 0;
  for (std::uint64_t i = 0; i < columns; ++i) mean += x(i);
  mean /= static_cast<double>(columns);
  double sum = 0;
  for (std::uint64_t i = 0; i < columns; ++i) sum += (x(i) - mean) * (x(i) - mean);
  const double root = std::sqrt(sum / static_cast<double>(columns) + static_cast<double>(args.epsilon));
  for (std::uint64_t i = 0; i < columns; ++i)
    store_element(dtype, call.output, row * columns + i, (x(i) - mean) / root);
}

int run(const CpuCall& call) {
  const auto& args = call.args<LayerNormArgs>();
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) normalize_row(args, call, row);
  return 0;
}

}  // namespace

LayerNormArgs layer_norm_arguments(const OpCall& call) {
  LayerNormArgs args;
  args.x = strided(call.input(0));
  args.epsilon = call.attributes->f32(Attr::epsilon);
  return args;
}

extern const CpuKernel layer_norm_scalar{fits_row_arguments, work, write_arguments<layer_norm_arguments>, run};

}  // namespace shunt
