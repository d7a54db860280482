// Arguments of experts_sum: out[t, c] = residual[t, c] + sum over j of share[t, j] * x[t, j, c]. The shares of a token
// are the softmax of scale * scores[t, ids[t, j]]; an id out of range has the score 0.
#pragma once

#include "ops/strided_args.h"

SHUNT_ARGS(ExpertsSumArgs) {
  SHUNT_U32S(4, x_strides);  // elements: of tokens, used experts and columns
  SHUNT_U32S(2, score_strides);
  SHUNT_U32S(2, id_strides);
  SHUNT_U32S(2, residual_strides);
  SHUNT_U32(tokens);
  SHUNT_U32(extent);  // value of an Extent: what counts the valid tokens
  SHUNT_U32(used);    // experts per token
  SHUNT_U32(experts);
  SHUNT_U32(columns);
  SHUNT_F32(scale);
};
SHUNT_ARGS_BYTES(ExpertsSumArgs, 64)

// The CUDA kernel: columns of a block.
SHUNT_ARGS_CONSTANT(kExpertsSumColumns, 256)

#ifndef SHUNT_GLSL
namespace shunt {

// Returns how many blocks of the CUDA kernel a token has.
constexpr std::uint32_t experts_sum_blocks(const ExpertsSumArgs& args) {
  return (args.columns + kExpertsSumColumns - 1) / kExpertsSumColumns;
}

}  // namespace shunt
#endif
