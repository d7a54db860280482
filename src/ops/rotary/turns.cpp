#include "ops/rotary/turns.h"

#include <cmath>
#include <numbers>

namespace shunt {

std::vector<std::uint32_t> fixed_point_turns(const RotaryArgs& args) {
  std::vector<std::uint32_t> words;
  for (std::uint32_t pair = 0; pair < args.dims / 2; ++pair) {
    const long double power = -2.0L * pair / args.dims;
    const long double turns =
        std::pow(static_cast<long double>(args.base), power) / (2 * std::numbers::pi_v<long double>);
    const auto fixed = static_cast<std::uint64_t>(std::ldexp(turns, 64));
    words.push_back(static_cast<std::uint32_t>(fixed >> 32U));
    words.push_back(static_cast<std::uint32_t>(fixed));
  }
  return words;
}

}  // namespace shunt
