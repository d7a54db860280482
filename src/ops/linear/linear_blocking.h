// Block sizes of the SIMD linear. They are the same for every instruction set, since scratch sizes depend on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shunt {

// Up to this many token rows use the dot kernel; more use the tile kernel (byte_blocking.h has that of bytes).
// Measured with m 2816, k 1024 and Q4_0 on one core, in GFLOP/s of dot and tile:
// AVX-512: 12 rows 81 and 52, 16 rows 87 and 70, 20 rows 93 and 60, 24 rows 96 and 70, 32 rows about 90 both;
// AVX2: 12 rows 51 and 39, 16 rows 53 both, 24 rows 55 and 52, 32 rows 58 and 61.
// `shunt bench ops linear --threads 1 --prompt ROWS` times the kernel that is chosen.
inline constexpr std::size_t kDotRows = 24;

// Weight rows that the row kernels take at a time.
inline constexpr std::size_t kDotGrain = 4;

// The least weight rows of a share of the dot kernel that are worth fetching x and its sums again.
inline constexpr std::size_t kDotBlockRows = 16;

// So many elements of x are rounded, widened or packed by one thread before others could begin.
inline constexpr std::size_t kSmallElements = 8192;

// Elements of a weight row decoded at a time. Four such strips fit the first-level cache together with the same part of
// eight token rows. A multiple of every block size.
inline constexpr std::size_t kStripElements = 1024;

// Elements of a weight row that share a scale and an offset, for dtypes that have them.
inline constexpr std::size_t kGroupElements = 32;

// Token rows of a panel; a multiple of every target's tile width.
inline constexpr std::size_t kPanelRows = 32;
constexpr std::size_t panels_of(std::size_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }
// Elements of k per tile. Such a part of a panel (32 KiB) stays in the first-level cache while all tiles use it.
inline constexpr std::size_t kTileElements = 256;
constexpr std::size_t tile_strips(std::size_t k) { return (k + kTileElements - 1) / kTileElements; }
// Weight rows that a thread decodes before multiplying them by all panels; a multiple of every tile height.
inline constexpr std::size_t kBlockRows = 96;
// Token rows packed at a time, which bounds the scratch.
inline constexpr std::size_t kBatchRows = 512;
// Sums of one weight row for a batch, plus a vector so that rows do not map to the same cache sets.
inline constexpr std::size_t kSumPitch = kBatchRows + 16;

// Returns the i-th of `count` weight rows where the two halves of them take turns. A core that computes between its
// loads reads two places of memory faster than one.
constexpr std::uint64_t in_two_streams(std::uint64_t i, std::uint64_t count) {
  return i / 2 + i % 2 * ((count + 1) / 2);
}

}  // namespace shunt
