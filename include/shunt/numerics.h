// How exactly products must be computed. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shunt/status.h"

namespace shunt {

// X(enumerator, name, meaning)
#define SHUNT_NUMERICS(X)                                                                \
  X(exact, "exact", "as F32 products of decoded weights, the same text on every device") \
  X(automatic, "auto", "rounds activations where the weights were rounded more")         \
  X(fast, "fast", "the fastest arithmetic of each device")

// Sums, norms, softmax, rotary angles and residuals are F32 in all of them (docs/numerics.md).
enum class Numerics : std::uint8_t {
#define SHUNT_ENUMERATOR(numerics, name, meaning) numerics,
  SHUNT_NUMERICS(SHUNT_ENUMERATOR)
#undef SHUNT_ENUMERATOR
};
[[nodiscard]] std::string_view name_of(Numerics numerics);
// Errors: invalid, with a list of the names.
[[nodiscard]] Result<Numerics> numerics_from_name(std::string_view name);
// Returns "exact: ...; auto: ...", for help texts.
[[nodiscard]] std::string describe_numerics();

}  // namespace shunt
