#include "ops/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void softmax_row(const SoftmaxArgs& args, const CpuCall& call, std::uint64_t row) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t begin = row_offset(args.x, row);
  const std::uint64_t mask_begin = row_offset(args.x.extents, args.mask_strides, row);
  const auto score = [&](std::uint64_t i) {
    const double x = load_element(dtype, call.inputs[0], begin + i * args.x.strides[3]);
    const double mask = args.has_mask == 0 ? 0
                                           : load_element(static_cast<DType>(args.mask_dtype), call.inputs[1],
                                                          mask_begin + i * args.mask_strides[3]);
    return static_cast<double>(args.scale) * x + mask;
  };
  double largest = kLowest;
  for (std::uint64_t i = 0; i < columns; ++i) largest = std::max(largest, score(i));
  const double shift = largest == kLowest ? 0 : largest;
  double sum = 0;
  for (std::uint64_t i = 0; i < columns; ++i) sum += std::exp(score(i) - shift);
  for (std::uint64_t i = 0; i < columns; ++i)
    store_element(dtype, call.output, row * columns + i, sum == 0 ? 0 : std::exp(score(i) - shift) / sum);
}

int run(const CpuCall& call) {
  const auto& args = call.args<SoftmaxArgs>();
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = share.begin; row < share.end; ++row) softmax_row(args, call, row);
  return 0;
}

}  // namespace

SoftmaxArgs softmax_arguments(const OpCall& call) {
  SoftmaxArgs args;
  args.x = strided(call.input(0));
  args.scale = call.attributes->f32(Attr::scale);
  if (call.has_input(1)) {
    const StridedTensor mask = strided_like(call.input(1), call.input(0));
    args.has_mask = 1;
    args.mask_dtype = mask.dtype;
    std::ranges::copy(mask.strides, args.mask_strides);
  }
  return args;
}

extern const CpuKernel softmax_scalar{fits_row_arguments, work, write_arguments<softmax_arguments>, run};

}  // namespace shunt
