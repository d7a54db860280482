// How x is rounded where products are computed in bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace shunt::test {

// Rounds 32 neighbours to integers of 8 bits times their scale.
inline void round_to_bytes(std::span<float> x) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  const float inverse = largest > 0 ? 127 / largest : 0;
  for (float& v : x) v = std::nearbyint(v * inverse) * (largest / 127);
}

}  // namespace shunt::test
