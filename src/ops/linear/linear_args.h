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
// Rows of the weight, and of x, per workgroup of the kernel for many rows.
SHUNT_ARGS_CONSTANT(kLinearTileRows, 64)

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

}  // namespace shunt
#endif
