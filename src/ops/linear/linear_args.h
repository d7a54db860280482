// linear and linear_add: out[t, r] = sum over c of x[t, c] * weight[r, c], plus residual[t, r] if there is one.
// rms_norm_linear: the same with x[t, c] * norm[c] / sqrt(mean over c of x[t, c]^2 + epsilon) for x[t, c].
// rms_norm_swiglu: the same with two weights, gate and up, giving silu(first product) * second product.
//
// x [..., k] F32, F16 or BF16: all axes but the last are rows ("tokens"). weight [m, k] of any floating or quantized
// dtype, layout rows. residual and out [..., m] F32. x may have any strides; in the others the elements of a row are
// adjacent.
#pragma once

#include "ops/strided_args.h"

// Extents are the axes of x except the last, outermost first; missing ones and the fourth are 1. Strides count
// elements.
SHUNT_ARGS(LinearArgs) {
  SHUNT_U32S(4, extents);
  SHUNT_U32S(4, x_strides);  // last: of the columns
  SHUNT_U32S(4, out_strides);
  SHUNT_U32S(4, residual_strides);
  SHUNT_U32(extent);  // value of an Extent: what counts the valid entries of extents[0]
  SHUNT_U32(k);
  SHUNT_U32(m);
  SHUNT_U32(x_dtype);  // value of a DType
  SHUNT_U32(weight_dtype);
  SHUNT_U32(weight_row_bytes);
  SHUNT_U32(has_residual);
  SHUNT_U32(has_norm);
  SHUNT_F32(epsilon);
  SHUNT_U32(has_up);
  SHUNT_U32S(2, reserved);
};
SHUNT_ARGS_BYTES(LinearArgs, 112)

// Rows of x per block of the CUDA kernel and per workgroup of the shader.
SHUNT_ARGS_CONSTANT(kLinearGroupRows, 4)
// The most rows of x that the kernel for few rows takes.
SHUNT_ARGS_CONSTANT(kLinearRowXRows, 8)
// The CUDA kernel for few rows: rows of the weight per warp, and columns that a warp takes at once.
SHUNT_ARGS_CONSTANT(kLinearRowWeights, 2)
SHUNT_ARGS_CONSTANT(kLinearRowPiece, 1024)
// The warps that keep a large GPU busy: three blocks for each of an H100's 132 multiprocessors.
SHUNT_ARGS_CONSTANT(kLinearRowEnough, 3168)
// Rows of the weight, and of x, per workgroup of the kernel for many rows.
SHUNT_ARGS_CONSTANT(kLinearTileRows, 64)
// The CUDA kernel for many rows: rows of the weight per block, and its threads.
SHUNT_ARGS_CONSTANT(kLinearTileWeights, 128)
SHUNT_ARGS_CONSTANT(kLinearTileThreads, 256)

#ifndef SHUNT_GLSL
namespace shunt {

// Returns the number of rows that the program was prepared for.
constexpr std::uint64_t linear_capacity(const LinearArgs& args) {
  return std::uint64_t{args.extents[0]} * args.extents[1] * args.extents[2];
}

// Returns the number of rows to compute in this submission, counted from the first.
constexpr std::uint64_t linear_rows(const LinearArgs& args, const Parameters& parameters) {
  return std::uint64_t{valid_rows(args.extents[0], static_cast<Extent>(args.extent), parameters)} * args.extents[1] *
         args.extents[2];
}

// Returns how many rows of x the CUDA kernel for few rows is compiled for, at least linear_capacity(args).
constexpr std::uint32_t linear_row_x_rows(const LinearArgs& args) {
  std::uint32_t rows = 1;
  while (rows < linear_capacity(args)) rows *= 2;
  return rows;
}

// Returns the threads of its blocks, which limits shared memory to what every GPU has.
constexpr std::uint32_t linear_row_threads(std::uint32_t x_rows) { return x_rows < 8 ? 256 : 128; }

// Returns the columns of x that it holds in shared memory at a time.
constexpr std::uint32_t linear_row_tile(std::uint32_t x_rows) {
  return x_rows < 4 ? 4 * kLinearRowPiece / x_rows : kLinearRowPiece;
}

// Returns how many pairs of rows of the weight, or of rows of gate and up, there are.
constexpr std::uint64_t linear_row_pairs(const LinearArgs& args) {
  return (std::uint64_t{args.m} * (1 + args.has_up) + 1) / kLinearRowWeights;
}

// Returns how many of its warps share the columns of a pair: as many as there are pieces of a tile, so that all warps
// have nearly the same to do.
constexpr std::uint32_t linear_row_warps(const LinearArgs& args) {
  const std::uint32_t most = linear_row_tile(linear_row_x_rows(args)) / kLinearRowPiece;
  std::uint32_t warps = 1;
  while (warps < most && warps * kLinearRowPiece < args.k) warps *= 2;
  return warps;
}

// Returns how many pairs one after the other a warp may take, for whose sums there is shared memory.
constexpr std::uint32_t linear_row_most_turns(std::uint32_t x_rows) { return x_rows < 8 ? 32 : 8; }

// Returns how many it takes: more where there are many pairs and one tile holds all of x, which so is read once.
constexpr std::uint32_t linear_row_turns(const LinearArgs& args) {
  const std::uint32_t x_rows = linear_row_x_rows(args);
  if (args.k > linear_row_tile(x_rows)) return 1;
  const std::uint64_t shares = linear_row_pairs(args) * linear_row_warps(args);
  const std::uint64_t turns = (shares + kLinearRowEnough - 1) / kLinearRowEnough;
  return turns < linear_row_most_turns(x_rows) ? static_cast<std::uint32_t>(turns) : linear_row_most_turns(x_rows);
}

// Returns how many tiles of `each` rows hold `rows`.
constexpr std::uint64_t linear_tiles(std::uint64_t rows, std::uint32_t each) { return (rows + each - 1) / each; }

// Returns the blocks of the CUDA kernel for few rows.
constexpr std::uint64_t linear_row_blocks(const LinearArgs& args) {
  const std::uint64_t warps = linear_row_threads(linear_row_x_rows(args)) / 32;
  const std::uint64_t each = warps / linear_row_warps(args) * linear_row_turns(args);
  return (linear_row_pairs(args) + each - 1) / each;
}

}  // namespace shunt
#endif
