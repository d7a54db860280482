// Sorts indices with a whole block: a bitonic network whose comparators all point the same way. A list of any length is
// then sorted as if padded with elements that stay at its end (Batcher, 1968).
#pragma once

#include "ops/kernel.cuh"

namespace shunt {

// Sorts places i and i ^ mask for each i below `count`.
template <class Precedes>
SHUNT_FUNCTION void sort_pairs(std::int32_t* ids, std::uint32_t count, std::uint32_t mask, Precedes precedes) {
  for (std::uint32_t i = lane(); i < count; i += kGroup) {
    const std::uint32_t other = i ^ mask;
    if (other <= i || other >= count || !precedes(ids[other], ids[i])) continue;
    const std::int32_t id = ids[i];
    ids[i] = ids[other];
    ids[other] = id;
  }
  sync();
}

// Sorts `count` ids in the memory of the device; precedes(a, b) says whether id a comes before id b. REQUIRES: all
// threads of the block call it, after a sync() that follows the writing of the ids.
template <class Precedes>
SHUNT_FUNCTION void sort_ids(std::int32_t* ids, std::uint32_t count, Precedes precedes) {
  for (std::uint64_t size = 2; size < std::uint64_t{2} * count; size *= 2) {
    sort_pairs(ids, count, static_cast<std::uint32_t>(size - 1), precedes);
    for (std::uint64_t stride = size / 4; stride > 0; stride /= 2)
      sort_pairs(ids, count, static_cast<std::uint32_t>(stride), precedes);
  }
}

}  // namespace shunt
