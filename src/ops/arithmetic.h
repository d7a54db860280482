// Which arithmetics the products of a call may use (arithmetics.def). Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ops/op.h"

namespace shunt {

enum class Arithmetic : std::uint8_t {
#define SHUNT_ARITHMETIC(name, error, meaning) name,
#include "ops/arithmetics.def"
};

struct ArithmeticInfo {
  std::string_view name;
  double error;
  std::string_view meaning;
};
[[nodiscard]] const ArithmeticInfo& info_of(Arithmetic arithmetic);
// One row per Arithmetic, in the order of the enum.
[[nodiscard]] std::span<const ArithmeticInfo> arithmetics();
// Returns " in halves"; nothing for F32.
[[nodiscard]] std::string words_of(Arithmetic arithmetic);

[[nodiscard]] Arithmetic least_exact(Arithmetic a, Arithmetic b);

// Names the op, the dtypes of its operands and how the device computes its products: "linear F32 Q8_0 -> F32 in
// halves". Times are compared within one kind.
[[nodiscard]] std::string kind_of(const OpCall& call, Arithmetic arithmetic);
[[nodiscard]] Arithmetic arithmetic_of(std::string_view kind);

// Returns whether a call may be computed so. With automatic numerics, rounding activations may not add more error than
// the format of the weights, or of the cache, has made already.
[[nodiscard]] bool allows(const OpCall& call, Arithmetic arithmetic);

// How far a model's results may be from exact ones along a text (docs/numerics.md). Infinity: no bound.
struct NumericsBounds {
  double nmse;        // normalized mean square error of all logits
  double mean_kl;     // KL divergence of the next token from the exact one, in nats
  double perplexity;  // relative change
};
[[nodiscard]] const NumericsBounds& bounds_of(Numerics numerics);

}  // namespace shunt
