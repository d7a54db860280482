// Arguments of linear_experts: out[t, j] = weight[slot of ids[t, j]] x[t, 0 or j] (+ bias), or zeros if the expert has
// no matrix here. experts_swiglu: silu(gate x) * (up x), with the matrices of the same slot. rms_norm_experts_swiglu:
// the same of x * norm / sqrt(mean of x^2 + epsilon).
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
  SHUNT_U32(has_up);       // multiplies by up as well; gives silu(product with gate) * product with up
  SHUNT_U32(has_norm);
  SHUNT_F32(epsilon);
};
SHUNT_ARGS_BYTES(ExpertsArgs, 96)

// Rows of a matrix per workgroup of the shader.
SHUNT_ARGS_CONSTANT(kExpertsGroupRows, 4)

#ifndef SHUNT_GLSL
namespace shunt {

inline constexpr std::uint32_t kNoExpert = 0xFFFFFFFFU;

struct ReadIndex {
  constexpr std::int32_t operator()(const std::int32_t* at) const { return *at; }
};
// Returns the matrix of a token's expert number `use`, or kNoExpert.
template <class Read = ReadIndex>
constexpr std::uint32_t expert_slot(const ExpertsArgs& args, const std::int32_t* ids, const std::int32_t* slots,
                                    std::uint64_t token, std::uint64_t use, Read read = {}) {
  const std::int32_t id = read(ids + token * args.id_strides[0] + use * args.id_strides[1]);
  if (id < 0 || static_cast<std::uint32_t>(id) >= args.experts) return kNoExpert;
  const std::int32_t slot =
      args.has_slots == 0 ? id : read(slots + std::uint64_t{static_cast<std::uint32_t>(id)} * args.slot_stride);
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

// ---- The CUDA kernels for many uses and weights in strips: experts_sort brings the uses of each expert together,
// experts_x_tiles writes their rows of x in that order, and experts_product multiplies.

inline constexpr std::uint32_t kExpertsSortThreads = 512;
inline constexpr std::uint32_t kExpertsMostHeld = kExpertsSortThreads;  // matrices
inline constexpr std::uint32_t kExpertsEight = 8;                       // sorted rows that x has at a time
inline constexpr std::int32_t kNoUse = -1;

constexpr std::uint32_t experts_uses(const ExpertsArgs& args) { return args.tokens * args.used; }
// Returns how many experts a program's uses may have at most.
constexpr std::uint32_t experts_most_used(const ExpertsArgs& args) {
  return args.held < experts_uses(args) ? args.held : experts_uses(args);
}
// Returns the most sorted rows: those of each expert are filled up to eights.
constexpr std::uint32_t experts_most_rows(const ExpertsArgs& args) {
  const std::uint32_t rows = experts_uses(args) + experts_most_used(args) * (kExpertsEight - 1);
  return rows / kExpertsEight * kExpertsEight;
}
// Returns how many rows a tile has: enough for most experts, if all are used equally often.
constexpr std::uint32_t experts_tile_rows(const ExpertsArgs& args) {
  return 2 * experts_uses(args) <= 32 * args.held ? 32 : 128;
}
constexpr std::uint32_t experts_most_tiles(const ExpertsArgs& args) {
  return experts_uses(args) / experts_tile_rows(args) + experts_most_used(args);
}

// Rows of x that a matrix is multiplied by together.
struct alignas(16) ExpertsTile {
  std::uint32_t slot;
  std::uint32_t first_eight;  // of the sorted rows
  std::uint32_t eights;
  std::uint32_t reserved;
};
struct alignas(16) ExpertsCounts {
  std::uint32_t rows;  // sorted
  std::uint32_t tiles;
  std::uint32_t idle;  // uses whose expert has no matrix here
  std::uint32_t reserved;
};

// Where in scratch memory these are, in bytes. The tiles of x come first (linear_args.h).
struct ExpertsScratch {
  std::uint64_t factors;  // of sorted rows
  std::uint64_t counts;   // one
  std::uint64_t tiles;    // experts_most_tiles()
  std::uint64_t uses;     // of sorted rows: the use, or kNoUse
  std::uint64_t idle;     // uses
  std::uint64_t bytes;    // in all
};
// `x_bytes` are those of the tiles of x.
constexpr ExpertsScratch experts_scratch(const ExpertsArgs& args, std::uint64_t x_bytes) {
  const std::uint64_t rows = experts_most_rows(args);
  ExpertsScratch scratch{};
  scratch.factors = x_bytes;
  scratch.counts = (scratch.factors + rows * 4 + 15) / 16 * 16;
  scratch.tiles = scratch.counts + sizeof(ExpertsCounts);
  scratch.uses = scratch.tiles + experts_most_tiles(args) * sizeof(ExpertsTile);
  scratch.idle = scratch.uses + rows * 4;
  scratch.bytes = scratch.idle + experts_uses(args) * std::uint64_t{4};
  return scratch;
}

}  // namespace shunt
#endif
