// matmul and matmul_add: out[t, r] = sum over c of x[t, c] * weight[r, c], plus residual[t, r] where given.
//
// x [..., k] F32, F16 or BF16: all axes but the last are rows ("tokens"). weight [m, k]
// of any floating or quantized dtype, layout rows. residual and out [..., m] F32. x may lie in any way; in the
// others the elements of a row are neighbours.
// Plain data, shared by C++, CUDA and (field by field) the shaders' uniform block.
#pragma once

#include <cstdint>

#include "ops/parameters.h"

namespace shunt {

// Four groups of four and a rest, as a uniform block of uvec4 has them. Strides count elements.
struct MatmulArgs {
  std::uint32_t extents[3];  // the leading axes of x, outermost first, 1 where x has fewer
  Extent extent;             // what counts the valid entries of extents[0]
  std::uint32_t x_strides[3];
  std::uint32_t x_dtype;  // DType
  std::uint32_t out_strides[3];
  std::uint32_t m;
  std::uint32_t residual_strides[3];
  std::uint32_t has_residual;
  std::uint32_t k;
  std::uint32_t weight_dtype;  // DType
  std::uint32_t weight_row_bytes;
  std::uint32_t x_column_stride;
};
static_assert(sizeof(MatmulArgs) == 80);

// Rows of x that a block of the CUDA kernel takes.
inline constexpr std::uint32_t kMatmulGroupRows = 4;

// Rows that the program was prepared for.
constexpr std::uint64_t matmul_capacity(const MatmulArgs& args) {
  return std::uint64_t{args.extents[0]} * args.extents[1] * args.extents[2];
}

// Rows to compute in this submission; they are the first ones.
constexpr std::uint64_t matmul_rows(const MatmulArgs& args, const Parameters& parameters) {
  return std::uint64_t{valid_rows(args.extents[0], args.extent, parameters)} * args.extents[1] * args.extents[2];
}

// Elements from the start of an operand with these strides to its row `row`.
constexpr std::uint64_t matmul_offset(const MatmulArgs& args, const std::uint32_t (&strides)[3], std::uint64_t row) {
  const std::uint64_t inner = row % args.extents[2];
  const std::uint64_t rest = row / args.extents[2];
  return rest / args.extents[1] * strides[0] + rest % args.extents[1] * strides[1] + inner * strides[2];
}

}  // namespace shunt
