// The form of the tiles that matrix units multiply. It is the same for every instruction set, since scratch sizes
// depend on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shunt {

// A matrix tile is an operand of one instruction: 16 rows of 32 elements.
inline constexpr std::size_t kMatrixTileRows = 16;
inline constexpr std::size_t kMatrixTileElements = 32;
using MatrixTile = std::uint16_t[kMatrixTileRows * kMatrixTileElements];

// Operands of 32 rows, by 32 elements of the inner dimension. Each part of the numbers has its two halves of 16 rows. A
// tile of a left operand is [rows][elements]; one of a right operand is [pairs of elements][rows][2].
template <std::size_t kParts>
using MatrixStep = MatrixTile[kParts][2];

}  // namespace shunt
