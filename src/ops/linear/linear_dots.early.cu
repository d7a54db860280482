// Few rows of x times few rows of a weight of F32, such as a router's: a block multiplies one row of both, and begins
// to read that of the weight before the kernel ends that writes x. If x is to be normalized, the row of the weight is
// multiplied by the norm's, and the sum is divided by the root of the mean square of x.
#include "ops/linear/linear_args.h"

#include "ops/early.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kWarps = kLinearWarpsThreads / 32;
constexpr std::uint32_t kColumns = 4 * kLinearWarpsThreads;  // that a block takes at once
constexpr std::uint32_t kAhead = 4;                          // so many times

// A thread's part of a row. Its loads are unconditional, so that all are in flight before the first is used.
struct Part {
  FourFloats fours[kAhead];

  // Reads from column `first` on, in steps of kColumns; what is past `columns` is 0. `read` takes a column.
  template <class Read>
  SHUNT_FUNCTION void read(std::uint32_t first, std::uint32_t columns, Read read) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kAhead; ++i)
      fours[i] = read(first + i * kColumns < columns ? first + i * kColumns : 0);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kAhead; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e)
        fours[i].values[e] = first + i * kColumns < columns ? fours[i].values[e] : 0.0F;
    }
  }
};

SHUNT_FUNCTION float dot(const Part& a, const Part& b) {
  float sum = 0.0F;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kAhead; ++i) {
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) sum += a.fours[i].values[e] * b.fours[i].values[e];
  }
  return sum;
}

// The block's rows.
struct Rows {
  std::uint64_t x_row;
  std::uint64_t weight_row;
  bool exist;
  const float* x;
  const float* weight;
  const float* norm;  // null: there is none

  SHUNT_FUNCTION explicit Rows(const CudaCall* call) {
    const auto& args = arguments_of<LinearArgs>(call);
    x_row = group() / args.m;
    weight_row = group() % args.m;
    exist = x_row < linear_rows(args, parameters_of(call));
    x = input_of<float>(call, 0) + row_offset(args.extents, args.x_strides, x_row);
    weight = reinterpret_cast<const float*>(input_of<std::uint8_t>(call, 1) + weight_row * args.weight_row_bytes);
    norm = args.has_norm == 0 ? nullptr : input_of<float>(call, 2);
  }

  // Computes what the thread adds to the product, and to the squares of x.
  template <bool in_sixteens>
  SHUNT_FUNCTION void multiply(const CudaCall* call, float& sum, float& squares) const {
    const std::uint32_t columns = arguments_of<LinearArgs>(call).k;
    Part factors;
    const auto read_factors = [&](std::uint32_t first) {
      factors.read(first, columns, [&](std::uint32_t column) { return read_four(weight + column, in_sixteens); });
      if (norm == nullptr) return;
      Part norms;
      norms.read(first, columns, [&](std::uint32_t column) { return read_four(norm + column, in_sixteens); });
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < kAhead; ++i) {
        SHUNT_UNROLL
        for (std::uint32_t e = 0; e < 4; ++e) factors.fours[i].values[e] *= norms.fours[i].values[e];
      }
    };
    std::uint32_t first = lane() * 4U;
    read_factors(first);
    wait_for_earlier_kernels();
    if (!exist) return;
    while (true) {
      Part values;
      values.read(first, columns, [&](std::uint32_t column) { return fresh_four(x + column, in_sixteens); });
      sum += dot(factors, values);
      squares += dot(values, values);
      first += kAhead * kColumns;
      if (first - lane() * 4U >= columns) return;
      read_factors(first);
    }
  }
};

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(linear_dots, shunt::kLinearWarpsThreads, 3) {
  using namespace shunt;
  SHUNT_SHARED float parts[2][kWarps];
  let_next_kernel_begin();
  const auto& args = arguments_of<LinearArgs>(call);
  const Rows rows(call);
  wait_to_read(call, rows.norm == nullptr ? 1U << 1U : 1U << 1U | 1U << 2U);
  float sum = 0.0F;
  float squares = 0.0F;
  if (is_in_sixteens(rows.x) && is_in_sixteens(rows.weight) && is_in_sixteens(rows.norm))
    rows.multiply<true>(call, sum, squares);
  else
    rows.multiply<false>(call, sum, squares);
  SHUNT_UNROLL
  for (std::uint32_t mask = 16; mask != 0; mask /= 2) {
    sum += from_lane(sum, mask);
    squares += from_lane(squares, mask);
  }
  if (lane() % 32U == 0) {
    parts[0][lane() / 32U] = sum;
    parts[1][lane() / 32U] = squares;
  }
  sync();
  if (lane() != 0 || !rows.exist) return;
  sum = 0.0F;
  squares = 0.0F;
  SHUNT_UNROLL
  for (std::uint32_t warp = 0; warp < kWarps; ++warp) {
    sum += parts[0][warp];
    squares += parts[1][warp];
  }
  if (rows.norm != nullptr) sum /= kernel_math::sqrt(squares / static_cast<float>(args.k) + args.epsilon);
  if (args.has_residual != 0)
    sum += input_of<float>(call, 2)[row_offset(args.extents, args.residual_strides, rows.x_row) + rows.weight_row];
  output_of<float>(call)[row_offset(args.extents, args.out_strides, rows.x_row) + rows.weight_row] = sum;
}
