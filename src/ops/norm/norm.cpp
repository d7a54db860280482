#include "ops/norm/norm.h"

#include <algorithm>
#include <cmath>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void normalize_row(const NormArgs& args, const CpuCall& call, std::uint64_t row) {
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  const std::uint64_t weight_begin = row_offset(args.x.extents, args.weight_strides, row);
  const auto x = [&](std::uint64_t i) { return load_element(dtype, call.inputs[0], begin + i * args.x.strides[3]); };
  double sum = 0;
  for (std::uint64_t i = 0; i < columns; ++i) sum += x(i) * x(i);
  const double root = std::sqrt(sum / static_cast<double>(columns) + static_cast<double>(args.epsilon));
  for (std::uint64_t i = 0; i < columns; ++i) {
    double value = x(i) / root;
    if (args.has_weight != 0)
      value *= load_element(static_cast<DType>(args.weight_dtype), call.inputs[1],
                            weight_begin + i * args.weight_strides[3]);
    store_element(dtype, call.output, row * columns + i, value);
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<NormArgs>();
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) normalize_row(args, call, row);
  return 0;
}

}  // namespace

NormArgs norm_arguments(const OpCall& call) {
  NormArgs args;
  args.x = strided(call.input(0));
  args.epsilon = call.attributes->f32(Attr::epsilon);
  if (call.has_input(1)) {
    const StridedTensor weight = strided_like(call.input(1), call.input(0));
    args.has_weight = 1;
    args.weight_dtype = weight.dtype;
    std::ranges::copy(weight.strides, args.weight_strides);
  }
  return args;
}

extern const CpuKernel norm_scalar{fits_row_arguments, work, write_arguments<norm_arguments>, run};

}  // namespace shunt
