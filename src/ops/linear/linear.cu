// A block multiplies one weight row by up to four rows of x.
#include "ops/linear/linear_args.h"

#include "ops/matrix.cuh"

namespace shunt {
namespace {

template <bool in_strips>
SHUNT_FUNCTION void multiply(const CudaCall* call) {
  const auto& args = arguments_of<LinearArgs>(call);
  const std::uint64_t r = group() % args.m;
  const std::uint64_t first = group() / args.m * kLinearGroupRows;
  const std::uint64_t end = linear_rows(args, parameters_of(call));
  if (first >= end) return;
  const std::uint64_t left = end - first;
  const std::uint32_t rows = left < kLinearGroupRows ? static_cast<std::uint32_t>(left) : kLinearGroupRows;
  std::uint64_t begins[kLinearGroupRows];
  float sums[kLinearGroupRows];
  for (std::uint32_t i = 0; i < kLinearGroupRows; ++i) {
    begins[i] = row_offset(args.extents, args.x_strides, first + (i < rows ? i : 0));
    sums[i] = 0.0F;
  }
  const Matrix<in_strips> weight{input_of<std::uint8_t>(call, 1), args.weight_dtype, args.k, args.weight_row_bytes};
  for (std::uint32_t column = lane(); column < args.k; column += kGroup) {
    const float w = weight.at(r, column);
    for (std::uint32_t i = 0; i < kLinearGroupRows; ++i)
      if (i < rows)
        sums[i] +=
            w * load(args.x_dtype, input_of<void>(call, 0), begins[i] + std::uint64_t{column} * args.x_strides[3]);
  }
  for (std::uint32_t i = 0; i < kLinearGroupRows; ++i) {
    if (i >= rows) continue;  // the same for all threads of the block
    float sum = sum_of_group(sums[i]);
    if (lane() != 0) continue;
    if (args.has_residual != 0)
      sum += input_of<float>(call, 2)[row_offset(args.extents, args.residual_strides, first + i) + r];
    output_of<float>(call)[row_offset(args.extents, args.out_strides, first + i) + r] = sum;
  }
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(linear) { shunt::multiply<false>(call); }
SHUNT_KERNEL(linear_strips) { shunt::multiply<true>(call); }
