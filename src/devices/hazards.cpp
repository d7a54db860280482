#include "devices/hazards.h"

#include <algorithm>

namespace shunt {

bool Hazards::has(const Access& access) const {
  if (access.begin == access.end) return false;
  return std::ranges::any_of(noted_, [&](const Access& other) {
    return access.buffer == other.buffer && access.begin < other.end && other.begin < access.end &&
           (access.writes || other.writes);
  });
}

bool Hazards::has(const Hazards& others) const {
  return std::ranges::any_of(others.noted_, [this](const Access& access) { return has(access); });
}

void Hazards::note(const Access& access) {
  if (access.buffer == nullptr || access.begin == access.end) return;
  // Adjoining or overlapping ranges, such as tensors of an arena, are merged into one.
  for (Access& other : noted_) {
    if (other.buffer != access.buffer || other.writes != access.writes) continue;
    if (access.begin > other.end || other.begin > access.end) continue;
    other.begin = std::min(other.begin, access.begin);
    other.end = std::max(other.end, access.end);
    return;
  }
  noted_.push_back(access);
}

void Hazards::note(const Hazards& others) {
  for (const Access& access : others.noted_) note(access);
}

}  // namespace shunt
