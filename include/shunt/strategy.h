// How work is divided among several devices. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "shunt/status.h"

namespace shunt {

// X(enumerator, name, meaning)
#define SHUNT_STRATEGIES(X)                                        \
  X(automatic, "auto", "by predicted time")                        \
  X(gpu, "gpu", "on the first GPU, except ops that it cannot run") \
  X(cpu, "cpu", "on the processor, except ops that it cannot run") \
  X(layers, "layers", "layers on the devices in turn")

enum class Strategy : std::uint8_t {
#define SHUNT_STRATEGY(strategy, name, meaning) strategy,
  SHUNT_STRATEGIES(SHUNT_STRATEGY)
#undef SHUNT_STRATEGY
};
[[nodiscard]] std::string_view name_of(Strategy strategy);
// Errors: invalid, with a list of the names.
[[nodiscard]] Result<Strategy> strategy_from_name(std::string_view name);

}  // namespace shunt
