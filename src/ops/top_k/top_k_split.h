// How the blocks of top_k_split share rows. For the host and the kernel.
#pragma once

#include <cstdint>

namespace shunt {

inline constexpr std::uint32_t kTopKSplitThreads = 256;
inline constexpr std::uint32_t kTopKSplitColumns = 1U << 18U;  // the most columns of a row, and places to find
inline constexpr std::uint32_t kTopKSplitPlaces = 64;
// The columns whose largest element a warp finds.
inline constexpr std::uint32_t kTopKSplitGroup = 32;

// The blocks of a row. Many rows have enough of them with one.
constexpr std::uint32_t top_k_splits(std::uint64_t rows) { return rows <= 64 ? 64 : 1; }
constexpr std::uint32_t top_k_split_groups(std::uint32_t columns) {
  return (columns + kTopKSplitGroup - 1) / kTopKSplitGroup;
}

}  // namespace shunt
