// Products of matrices of 16 x 16 halves in shared memory, by matrix instructions; sums are F32.
//
// A matrix is four blocks of 8 x 8 halves, each 128 bytes: rows of 16 bytes, one after the other. Blocks beside each
// other follow each other, those below at a distance. Both operands lie with the columns of the sum along k:
//   sum[row][column] += sum over k of left[row][k] * right[column][k]
// Only this file knows how the threads of a wave hold operands and sums. All threads of a wave call these functions
// together. For CUDA GPUs of compute capability 7.5 and later (mma), AMD GPUs gfx90a and gfx94 (MFMA) and gfx11 (WMMA),
// and the host. AMD's instructions give a thread sums of one column, so operands change sides there.
#pragma once

#include "ops/async_copy.cuh"

#if !defined(__HIP__)
#include "ops/warp_product.cuh"
#endif

namespace shunt {

inline constexpr std::uint32_t kTile = 16;            // rows and columns
inline constexpr std::uint32_t kBlockOfHalves = 128;  // bytes
#if defined(__GFX9__)
inline constexpr std::uint32_t kWaveThreads = 64;  // that multiply together
#else
inline constexpr std::uint32_t kWaveThreads = 32;
#endif
inline constexpr std::uint32_t kSumsOfThread = kTile * kTile / kWaveThreads;

// The sums of a matrix that a thread has:
//   at(i)         its sum i
//   row_of(i)     the row of the sum, and column_of(i) its column
struct TileSums;
// Reads an operand; `below` is the distance from its upper blocks to its lower ones. Other threads wrote it before a
// sync().
//   TileOperand load_left(SharedAddress at, std::uint32_t below)
//   TileOperand load_right(SharedAddress at, std::uint32_t below)
// Adds a product.
//   void add_tile_product(TileSums& sums, const TileOperand& left, const TileOperand& right)

#if defined(__HIP__)

struct TileSums {
  using Vector = float __attribute__((ext_vector_type(kSumsOfThread)));
  Vector vector = 0.0F;

  SHUNT_FUNCTION float at(std::uint32_t i) const { return vector[i]; }
  SHUNT_FUNCTION void multiply(std::uint32_t i, float factor) { vector[i] *= factor; }
  SHUNT_FUNCTION static std::uint32_t row_of(std::uint32_t) { return lane() % kTile; }
#if defined(__GFX9__)
  SHUNT_FUNCTION static std::uint32_t column_of(std::uint32_t i) { return lane() % 64U / kTile * 4U + i; }
#else
  SHUNT_FUNCTION static std::uint32_t column_of(std::uint32_t i) { return i * 2U + lane() % 32U / kTile; }
#endif
};

#if defined(__GFX9__)

// Of row `lane() % 16`, four neighbours.
using TileOperand = _Float16 __attribute__((ext_vector_type(4)));

SHUNT_FUNCTION TileOperand load_either(SharedAddress at, std::uint32_t below) {
  const std::uint32_t row = lane() % kTile;
  const std::uint32_t four = lane() % 64U / kTile;
  return *reinterpret_cast<InShared<const TileOperand>*>(at + row / 8U * below + row % 8U * 16U +
                                                         four / 2U * kBlockOfHalves + four % 2U * 8U);
}
SHUNT_FUNCTION void add_tile_product(TileSums& sums, const TileOperand& left, const TileOperand& right) {
  sums.vector = __builtin_amdgcn_mfma_f32_16x16x16f16(right, left, sums.vector, 0, 0, 0);
}

#else

// Row `lane() % 16`.
using TileOperand = _Float16 __attribute__((ext_vector_type(16)));

SHUNT_FUNCTION TileOperand load_either(SharedAddress at, std::uint32_t below) {
  using Eight = _Float16 __attribute__((ext_vector_type(8)));
  const std::uint32_t row = lane() % kTile;
  const auto* const eights = reinterpret_cast<InShared<const Eight>*>(at + row / 8U * below + row % 8U * 16U);
  return __builtin_shufflevector(eights[0], eights[kBlockOfHalves / sizeof(Eight)], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                 11, 12, 13, 14, 15);
}
SHUNT_FUNCTION void add_tile_product(TileSums& sums, const TileOperand& left, const TileOperand& right) {
  sums.vector = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(right, left, sums.vector);
}

#endif

SHUNT_FUNCTION TileOperand load_left(SharedAddress at, std::uint32_t below) { return load_either(at, below); }
SHUNT_FUNCTION TileOperand load_right(SharedAddress at, std::uint32_t below) { return load_either(at, below); }

#else

// Those of warp_product.cuh for the left and the right half of the columns.
struct TileSums {
  float halves[2][4]{};

  SHUNT_FUNCTION float at(std::uint32_t i) const { return halves[i / 4U][i % 4U]; }
  SHUNT_FUNCTION void multiply(std::uint32_t i, float factor) { halves[i / 4U][i % 4U] *= factor; }
  SHUNT_FUNCTION static std::uint32_t row_of(std::uint32_t i) { return lane() % 32U / 4U + i % 4U / 2U * 8U; }
  SHUNT_FUNCTION static std::uint32_t column_of(std::uint32_t i) { return i / 4U * 8U + lane() % 4U * 2U + i % 2U; }
};

using TileOperand = FourWords;

// The instruction takes upper blocks and lower ones in turn from the left, and from the right those beside each other.
SHUNT_FUNCTION TileOperand load_left(SharedAddress at, std::uint32_t below) {
  const std::uint32_t block = lane() % 32U / 8U;
  const std::uint32_t row = block % 2U * below + block / 2U * kBlockOfHalves + lane() % 8U * 16U;
  return load_matrices(at + row);
}
SHUNT_FUNCTION TileOperand load_right(SharedAddress at, std::uint32_t below) {
  const std::uint32_t block = lane() % 32U / 8U;
  const std::uint32_t row = block / 2U * below + block % 2U * kBlockOfHalves + lane() % 8U * 16U;
  return load_matrices(at + row);
}
SHUNT_FUNCTION void add_tile_product(TileSums& sums, const TileOperand& left, const TileOperand& right) {
  add_product<dtype::F16>(sums.halves[0], left, right.words[0], right.words[1]);
  add_product<dtype::F16>(sums.halves[1], left, right.words[2], right.words[3]);
}

#endif

}  // namespace shunt
