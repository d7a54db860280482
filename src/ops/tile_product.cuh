// Products of matrices of 16 x 16 halves in shared memory, by matrix instructions; sums are F32.
//
// A matrix is four blocks of 8 x 8 halves, each 128 bytes: rows of 16 bytes, one after the other. Blocks beside each
// other follow each other, those below at a distance. Both operands lie with the columns of the sum along k:
//   sum[row][column] += sum over k of left[row][k] * right[column][k]
// How the threads of a wave hold operands and sums is known here only. All threads of a wave call these functions
// together. For CUDA GPUs of compute capability 8.0 and later, and for the host.
#pragma once

#include "ops/async_copy.cuh"
#include "ops/warp_product.cuh"

namespace shunt {

inline constexpr std::uint32_t kTile = 16;            // rows and columns
inline constexpr std::uint32_t kBlockOfHalves = 128;  // bytes
inline constexpr std::uint32_t kWaveThreads = 32;     // that multiply together
inline constexpr std::uint32_t kSumsOfThread = kTile * kTile / kWaveThreads;

// Rows g and g + 8 of two halves of the columns: sums of warp_product.cuh.
struct TileSums {
  float halves[2][4]{};

  SHUNT_FUNCTION float& at(std::uint32_t i) { return halves[i / 4U][i % 4U]; }
  SHUNT_FUNCTION float at(std::uint32_t i) const { return halves[i / 4U][i % 4U]; }
  // Returns the row and the column of the thread's sum i.
  SHUNT_FUNCTION static std::uint32_t row_of(std::uint32_t i) { return lane() % 32U / 4U + i % 4U / 2U * 8U; }
  SHUNT_FUNCTION static std::uint32_t column_of(std::uint32_t i) { return i / 4U * 8U + lane() % 4U * 2U + i % 2U; }
};

using TileOperand = FourWords;

// Reads a matrix; `below` is the distance from its upper blocks to its lower ones. Other threads wrote it before a
// sync().
SHUNT_FUNCTION TileOperand load_tile(SharedAddress at, std::uint32_t below) {
  const std::uint32_t block = lane() % 32U / 8U;
  return load_matrices(at + block % 2U * below + block / 2U * kBlockOfHalves + lane() % 8U * 16U);
}

SHUNT_FUNCTION void add_tile_product(TileSums& sums, const TileOperand& left, const TileOperand& right) {
  add_product<dtype::F16>(sums.halves[0], left, right.words[0], right.words[2]);
  add_product<dtype::F16>(sums.halves[1], left, right.words[1], right.words[3]);
}

}  // namespace shunt
