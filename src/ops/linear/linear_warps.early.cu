// Many rows of x times few rows of a weight of F32, such as a router's: too few tiles for linear_tile to fill a GPU. A
// warp multiplies some rows of both, and its threads share the columns.
#include "ops/linear/linear_args.h"

#include "ops/early.cuh"

namespace shunt {
namespace {

template <std::uint32_t count>
SHUNT_FUNCTION void read_rows(const float* const (&rows)[count], std::uint32_t column, FourFloats (&fours)[count]) {
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < count; ++i) fours[i] = read_four(rows[i] + column, is_in_sixteens(rows[i]));
}

SHUNT_FUNCTION float dot(const FourFloats& a, const FourFloats& b, float sum) {
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < 4; ++e) sum += a.values[e] * b.values[e];
  return sum;
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(linear_warps, shunt::kLinearWarpsThreads, 3) {
  using namespace shunt;
  let_next_kernel_begin();
  const auto& args = arguments_of<LinearArgs>(call);
  const std::uint64_t rows = linear_rows(args, parameters_of(call));
  const std::uint64_t number = group() * (kLinearWarpsThreads / 32) + lane() / 32U;
  const std::uint64_t weight_tiles = linear_tiles(args.m, kLinearWarpsWeights);
  const std::uint64_t first_x = number / weight_tiles * kLinearWarpsRows;
  const std::uint64_t first_weight = number % weight_tiles * kLinearWarpsWeights;
  wait_for_earlier_kernels();
  if (first_x >= rows) return;
  // Past the last row, the last one is read again; its sums are not stored.
  const float* x[kLinearWarpsRows];
  SHUNT_UNROLL
  for (std::uint32_t n = 0; n < kLinearWarpsRows; ++n)
    x[n] = input_of<float>(call, 0) +
           row_offset(args.extents, args.x_strides, first_x + n < rows ? first_x + n : rows - 1);
  const float* weights[kLinearWarpsWeights];
  SHUNT_UNROLL
  for (std::uint32_t r = 0; r < kLinearWarpsWeights; ++r)
    weights[r] = reinterpret_cast<const float*>(input_of<std::uint8_t>(call, 1) +
                                                (first_weight + r < args.m ? first_weight + r : args.m - 1U) *
                                                    args.weight_row_bytes);
  float sums[kLinearWarpsRows][kLinearWarpsWeights]{};
  for (std::uint32_t column = lane() % 32U * 4U; column < args.k; column += 128U) {
    FourFloats x_fours[kLinearWarpsRows];
    FourFloats weight_fours[kLinearWarpsWeights];
    read_rows(x, column, x_fours);
    read_rows(weights, column, weight_fours);
    SHUNT_UNROLL
    for (std::uint32_t n = 0; n < kLinearWarpsRows; ++n) {
      SHUNT_UNROLL
      for (std::uint32_t r = 0; r < kLinearWarpsWeights; ++r) sums[n][r] = dot(x_fours[n], weight_fours[r], sums[n][r]);
    }
  }
  SHUNT_UNROLL
  for (std::uint32_t n = 0; n < kLinearWarpsRows; ++n) {
    float* const out = output_of<float>(call) + row_offset(args.extents, args.out_strides, first_x + n);
    const float* const residual =
        input_of<float>(call, 2) + row_offset(args.extents, args.residual_strides, first_x + n);
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kLinearWarpsWeights; ++r) {
      SHUNT_UNROLL
      for (std::uint32_t mask = 16; mask != 0; mask /= 2) sums[n][r] += from_lane(sums[n][r], mask);
      const std::uint64_t row = first_weight + r;
      if (lane() % 32U != r || first_x + n >= rows || row >= args.m) continue;
      out[row] = args.has_residual != 0 ? sums[n][r] + residual[row] : sums[n][r];
    }
  }
}
