// Few rows of x times few rows of a weight of F32, such as a router's: a warp multiplies one row of both, and begins to
// read that of the weight before the kernel ends that writes x. If x is to be normalized, the row of the weight is
// multiplied by the norm's, and the sum is divided by the root of the mean square of x.
#include "ops/linear/linear_args.h"

#include "ops/early.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kColumns = 128;  // that a warp takes at once
constexpr std::uint32_t kAhead = 16;     // so many times

// A row of the weight.
struct WeightRow {
  const float* weight;
  const float* norm;  // null: there is none
  bool in_sixteens;   // both

  SHUNT_FUNCTION FourFloats read(std::uint32_t column) const {
    FourFloats four = read_four(weight + column, in_sixteens);
    if (norm == nullptr) return four;
    const FourFloats factors = read_four(norm + column, in_sixteens);
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) four.values[e] *= factors.values[e];
    return four;
  }
};

SHUNT_FUNCTION float dot(const FourFloats& a, const FourFloats& b, float sum) {
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < 4; ++e) sum += a.values[e] * b.values[e];
  return sum;
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(linear_dots, shunt::kLinearWarpsThreads, 3) {
  using namespace shunt;
  let_next_kernel_begin();
  const auto& args = arguments_of<LinearArgs>(call);
  const std::uint64_t number = group() * (kLinearWarpsThreads / 32) + lane() / 32U;
  const std::uint64_t row = number / args.m;
  const std::uint64_t weight_row = number % args.m;
  const std::uint32_t first = lane() % 32U * 4U;
  const bool exists = row < linear_rows(args, parameters_of(call));
  const auto* const weight = reinterpret_cast<const float*>(input_of<std::uint8_t>(call, 1) +
                                                            (exists ? weight_row : 0) * args.weight_row_bytes);
  const float* const norm = args.has_norm == 0 ? nullptr : input_of<float>(call, 2);
  const WeightRow rows{weight, norm, is_in_sixteens(weight) && is_in_sixteens(norm)};
  wait_to_read(call, norm == nullptr ? 1U << 1U : 1U << 1U | 1U << 2U);
  FourFloats ahead[kAhead]{};
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kAhead; ++i) {
    const std::uint32_t column = first + i * kColumns;
    if (column < args.k) ahead[i] = rows.read(column);
  }
  wait_for_earlier_kernels();
  if (!exists) return;
  const float* const x = input_of<float>(call, 0) + row_offset(args.extents, args.x_strides, row);
  const bool x_in_sixteens = is_in_sixteens(x);
  float sum = 0.0F;
  float squares = 0.0F;
  const auto add = [&](const FourFloats& factors, std::uint32_t column) {
    const FourFloats four = fresh_four(x + column, x_in_sixteens);
    sum = dot(factors, four, sum);
    squares = dot(four, four, squares);
  };
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kAhead; ++i) {
    const std::uint32_t column = first + i * kColumns;
    if (column < args.k) add(ahead[i], column);
  }
  for (std::uint32_t column = first + kAhead * kColumns; column < args.k; column += kColumns)
    add(rows.read(column), column);
  SHUNT_UNROLL
  for (std::uint32_t mask = 16; mask != 0; mask /= 2) {
    sum += from_lane(sum, mask);
    squares += from_lane(squares, mask);
  }
  if (lane() % 32U != 0) return;
  if (norm != nullptr) sum /= kernel_math::sqrt(squares / static_cast<float>(args.k) + args.epsilon);
  if (args.has_residual != 0)
    sum += input_of<float>(call, 2)[row_offset(args.extents, args.residual_strides, row) + weight_row];
  output_of<float>(call)[row_offset(args.extents, args.out_strides, row) + weight_row] = sum;
}
