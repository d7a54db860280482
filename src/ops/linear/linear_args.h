// linear and linear_add: out[t, r] = sum over c of x[t, c] * weight[r, c], plus residual[t, r] where given.
// rms_norm_linear: the same of x[t, c] * norm[c] / sqrt(mean over c of x[t, c]^2 + epsilon). rms_norm_swiglu: of two
// weights, gate and up, silu of the first product times the second.
//
// x [..., k] F32, F16 or BF16: all axes but the last are rows ("tokens"). weight [m, k]
// of any floating or quantized dtype, layout rows. residual and out [..., m] F32. x may lie in any way; in the
// others the elements of a row are neighbours.
#pragma once

#include "ops/strided_args.h"

// The axes of x but the last, outermost first; 1 where x has fewer, and always in the end. Strides count elements.
SHUNT_ARGS(LinearArgs) {
  SHUNT_U32S(4, extents);
  SHUNT_U32S(4, x_strides);  // the last: of the columns
  SHUNT_U32S(4, out_strides);
  SHUNT_U32S(4, residual_strides);
  SHUNT_U32(extent);  // the number of an Extent: what counts the valid entries of extents[0]
  SHUNT_U32(k);
  SHUNT_U32(m);
  SHUNT_U32(x_dtype);  // the number of a DType
  SHUNT_U32(weight_dtype);
  SHUNT_U32(weight_row_bytes);
  SHUNT_U32(has_residual);
  SHUNT_U32(has_norm);
  SHUNT_F32(epsilon);
  SHUNT_U32(has_up);
  SHUNT_U32S(2, reserved);
};
SHUNT_ARGS_BYTES(LinearArgs, 112)

// Rows of x that a block of the CUDA kernel and a workgroup of the shader take.
SHUNT_ARGS_CONSTANT(kLinearGroupRows, 4)
// Rows of x that the kernel for few of them takes at most.
SHUNT_ARGS_CONSTANT(kLinearRowXRows, 8)
// Rows of the weight, and of x, that a workgroup of the kernel for many takes.
SHUNT_ARGS_CONSTANT(kLinearTileRows, 64)

#ifndef SHUNT_GLSL
namespace shunt {

// Rows that the program was prepared for.
constexpr std::uint64_t linear_capacity(const LinearArgs& args) {
  return std::uint64_t{args.extents[0]} * args.extents[1] * args.extents[2];
}

// Rows to compute in this submission; they are the first ones.
constexpr std::uint64_t linear_rows(const LinearArgs& args, const Parameters& parameters) {
  return std::uint64_t{valid_rows(args.extents[0], static_cast<Extent>(args.extent), parameters)} * args.extents[1] *
         args.extents[2];
}

}  // namespace shunt
#endif
