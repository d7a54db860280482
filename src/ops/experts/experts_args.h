// Arguments of linear_experts: out[t, j] = weight[slot of ids[t, j]] x[t, 0 or j] (+ bias), or zeros if the expert has
// no matrix here.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ExpertsArgs) {
  SHUNT_U32S(4, x_strides);  // elements: of tokens, used experts (0: one row for all) and columns
  SHUNT_U32S(2, id_strides);
  SHUNT_U32S(2, bias_strides);
  SHUNT_U32(tokens);
  SHUNT_U32(extent);  // value of an Extent: what counts the valid tokens
  SHUNT_U32(used);    // experts per token
  SHUNT_U32(k);       // columns
  SHUNT_U32(m);       // rows of each matrix
  SHUNT_U32(held);    // matrices
  SHUNT_U32(experts);
  SHUNT_U32(has_slots);
  SHUNT_U32(slot_stride);
  SHUNT_U32(has_bias);
  SHUNT_U32(weight_dtype);
  SHUNT_U32(weight_row_bytes);
  SHUNT_U32(weight_rows);  // from one matrix to the next
  SHUNT_U32(reserved);
  SHUNT_U32S(2, reserved_too);
};
SHUNT_ARGS_BYTES(ExpertsArgs, 96)

// Rows of a matrix per workgroup of the shader.
SHUNT_ARGS_CONSTANT(kExpertsGroupRows, 4)

#ifndef SHUNT_GLSL
namespace shunt {

inline constexpr std::uint32_t kNoExpert = 0xFFFFFFFFU;

// Returns the matrix of a token's expert number `use`, or kNoExpert.
constexpr std::uint32_t expert_slot(const ExpertsArgs& args, const std::int32_t* ids, const std::int32_t* slots,
                                    std::uint64_t token, std::uint64_t use) {
  const std::int32_t id = ids[token * args.id_strides[0] + use * args.id_strides[1]];
  if (id < 0 || static_cast<std::uint32_t>(id) >= args.experts) return kNoExpert;
  const std::int32_t slot =
      args.has_slots == 0 ? id : slots[std::uint64_t{static_cast<std::uint32_t>(id)} * args.slot_stride];
  return slot < 0 || static_cast<std::uint32_t>(slot) >= args.held ? kNoExpert : static_cast<std::uint32_t>(slot);
}

// Returns the elements from the start of x to the row of one use.
constexpr std::uint64_t expert_x_offset(const ExpertsArgs& args, std::uint64_t token, std::uint64_t use) {
  return token * args.x_strides[0] + use * args.x_strides[1];
}

// Returns the bytes from the start of the weight to a matrix.
constexpr std::uint64_t expert_weight_offset(const ExpertsArgs& args, std::uint32_t slot) {
  return std::uint64_t{slot} * args.weight_rows * args.weight_row_bytes;
}

}  // namespace shunt
#endif
