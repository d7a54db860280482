// How x is rounded where products are computed in integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace shunt::test {

// Rounds neighbours to integers of at most `most` times their scale.
inline void round_to_integers(float most, std::span<float> x) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  const float inverse = largest > 0 ? most / largest : 0;
  for (float& v : x) v = std::nearbyint(v * inverse) * (largest / most);
}

}  // namespace shunt::test
