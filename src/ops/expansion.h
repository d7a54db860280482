// The expansion of a fused row, "mul(rms_norm(x), weight)", as a tree.
//
// The trees are parsed from the table once and are constant afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/op.h"

namespace shunt {

struct Expansion {
  // Index of one of the fused row's inputs; valid if `arguments` is empty.
  std::uint32_t input = 0;
  // The inner row; valid if `arguments` is not empty.
  Op op{};
  std::vector<Expansion> arguments;

  [[nodiscard]] bool is_input() const { return arguments.empty(); }
};

// REQUIRES: info_of(op).is_fused().
[[nodiscard]] const Expansion& expansion_of(Op op);

// Returns those of a fused row's attributes that the inner row `op` takes.
[[nodiscard]] Attributes attributes_for(Op op, const Attributes& attributes);

// Parses a row's expansion. Errors: invalid, with the position.
[[nodiscard]] Result<Expansion> parse_expansion(const OpInfo& row);

}  // namespace shunt
