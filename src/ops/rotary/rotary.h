// Builds the arguments of calls of the rotary family (rotary_args.h). Pure functions, for the host.
#pragma once

#include <cstdint>

#include "ops/op.h"
#include "ops/rotary/rotary_args.h"
#include "ops/strided.h"

namespace shunt {

// `x` and `positions` are those inputs of the call. `factors` is null if there are none.
[[nodiscard]] RotaryArgs rotary_arguments(const OpCall& call, const Operand& x, const Operand& positions,
                                          const Operand* factors);
// REQUIRES: a call of `rotary`.
[[nodiscard]] RotaryArgs rotary_arguments(const OpCall& call);

// Checks x [tokens, heads, head_dim] and the rotary attributes, also for rotary_cache_write.
[[nodiscard]] Status need_rotary(const Operand& x, const Attributes& attributes);
void set_rotary_attributes(SampleBuilder& sample, std::uint32_t head_dim);

// Scratch of the SIMD kernels: turns per position, sine and cosine of each pair of a head, padded to whole vectors.
inline std::uint32_t padded_pairs(std::uint32_t dims) { return (dims / 2 + 15) / 16 * 16; }
inline std::uint64_t rotation_scratch_bytes(std::uint32_t head_dim) {
  return std::uint64_t{padded_pairs(head_dim)} * (sizeof(double) + 2 * sizeof(float));
}

}  // namespace shunt
