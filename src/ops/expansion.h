// The expansion of a fused row, "mul(rms_norm(x), weight)", as a tree.
//
// The trees are parsed once from the table and constant from then on.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/op.h"

namespace shunt {

struct Expansion {
  // Index of one of the fused row's inputs; only where `arguments` is empty.
  std::uint32_t input = 0;
  // The inner row; only where `arguments` is not empty.
  Op op{};
  std::vector<Expansion> arguments;

  [[nodiscard]] bool is_input() const { return arguments.empty(); }
};

// REQUIRES: info_of(op).is_fused().
[[nodiscard]] const Expansion& expansion_of(Op op);

// Those of a fused row's attributes that the inner row `op` takes.
[[nodiscard]] Attributes attributes_for(Op op, const Attributes& attributes);

// Reads the text of a row. Errors: invalid, with the place.
[[nodiscard]] Result<Expansion> parse_expansion(const OpInfo& row);

}  // namespace shunt
