// Writes many rows of x as tiles of halves, for products by tensor cores; linear_args.h describes the tiles.
//
// A block takes some rows. Each is multiplied by a power of two that makes its largest element a large half; the row's
// factor, by which its products are multiplied, takes that back. For the norm, x is multiplied by its weights here, and
// the factor has the mean square. Rows that fill up eights are zeros.
//
// A kernel says by XRows what to write:
//   k()        the columns
//   rows()     of the tiles, a multiple of 8
//   eights()   the distance between pieces of neighbouring columns, in pieces
//   x_of(row)  the row of x; null: zeros
//   norm(), epsilon()  of the norm; null: there is none
//   tiles(), factors()  the results
#pragma once

#include "ops/linear/linear_args.h"

#include "ops/early.cuh"
#include "ops/halves.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kWarps = kLinearXTilesThreads / 32;
constexpr std::uint32_t kThreadsOfRow = kLinearXTilesThreads / kLinearXTilesRows;
constexpr std::uint32_t kColumns = 16;         // of a thread at a time
constexpr std::uint32_t kHeld = 2;             // times, whose elements stay in registers
constexpr std::int32_t kLargestExponent = 14;  // of a row's largest element

struct Sixteen {
  FourFloats fours[4]{};
};

// The block's rows are neighbours in a tile, so threads take them in turn.
struct XRow {
  const float* x;
  const float* norm;  // null: none
  bool is_valid;
  bool in_sixteens;

  SHUNT_FUNCTION Sixteen read(std::uint32_t column, float& squares) const {
    Sixteen sixteen;
    if (!is_valid) return sixteen;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i)
      sixteen.fours[i] = fresh_four(x + column + std::uint64_t{i} * 4U, in_sixteens);
    if (norm == nullptr) return sixteen;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      const FourFloats factors = read_four(norm + column + std::uint64_t{i} * 4U, is_in_sixteens(norm));
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) {
        squares += sixteen.fours[i].values[e] * sixteen.fours[i].values[e];
        sixteen.fours[i].values[e] *= factors.values[e];
      }
    }
    return sixteen;
  }
};

SHUNT_FUNCTION float largest_of(const Sixteen& sixteen, float largest) {
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e)
      largest = kernel_math::max(largest, kernel_math::abs(sixteen.fours[i].values[e]));
  }
  return largest;
}

// Returns the exponent of the power of two to multiply by. A row that is not finite keeps its values.
SHUNT_FUNCTION std::int32_t exponent_of(float largest) {
  const auto exponent = static_cast<std::int32_t>(kernel_math::bits_of(largest) >> 23U) - 127;
  if (exponent == 128) return 0;
  const std::int32_t wanted = kLargestExponent - exponent;
  return wanted > 126 ? 126 : wanted;
}

// Writes the halves of 16 columns, 8 at a time, and with two halves what the first left over.
template <std::uint32_t halves>
SHUNT_FUNCTION void put(std::uint8_t* at, std::uint64_t part_bytes, const Sixteen& sixteen, float scale) {
  SHUNT_UNROLL
  for (std::uint32_t half = 0; half < 2; ++half) {
    FourWords words[2];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      const float low = sixteen.fours[i].values[std::uint64_t{half} * 2U] * scale;
      const float high = sixteen.fours[i].values[std::uint64_t{half} * 2U + 1U] * scale;
      words[0].words[i] = narrow_pair(low, high);
      if constexpr (halves == 2)
        words[1].words[i] = narrow_pair(low - low_half(words[0].words[i]), high - high_half(words[0].words[i]));
    }
    SHUNT_UNROLL
    for (std::uint32_t part = 0; part < halves; ++part)
      *reinterpret_cast<FourWords*>(at + half * std::uint64_t{kLinearPieceRows} * 16U + part * part_bytes) =
          words[part];
  }
}

template <std::uint32_t halves, class XRows>
SHUNT_FUNCTION void write_tiles(const XRows& rows) {
  SHUNT_SHARED float parts[2][kWarps][kLinearXTilesRows];
  if (group() * kLinearXTilesRows >= rows.rows()) return;
  const std::uint64_t row = group() * kLinearXTilesRows + lane() % kLinearXTilesRows;
  const std::uint64_t eights = rows.eights();
  const std::uint32_t k = rows.k();
  const float* const x = rows.x_of(row);
  const float* const norm = rows.norm();
  const XRow in{x, norm, x != nullptr, is_in_sixteens(x)};

  Sixteen held[kHeld];
  float largest = 0.0F;
  float squares = 0.0F;
  const std::uint32_t first = lane() / kLinearXTilesRows * kColumns;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kHeld; ++i) {
    const std::uint32_t column = first + i * kThreadsOfRow * kColumns;
    if (column < k) held[i] = in.read(column, squares);
    largest = largest_of(held[i], largest);
  }
  for (std::uint32_t column = first + kHeld * kThreadsOfRow * kColumns; column < k; column += kThreadsOfRow * kColumns)
    largest = largest_of(in.read(column, squares), largest);

  SHUNT_UNROLL
  for (std::uint32_t mask = kLinearXTilesRows; mask < 32; mask *= 2) {
    largest = kernel_math::max(largest, from_lane(largest, mask));
    squares += from_lane(squares, mask);
  }
  if (lane() % 32U < kLinearXTilesRows) {
    parts[0][lane() / 32U][lane() % 32U] = largest;
    parts[1][lane() / 32U][lane() % 32U] = squares;
  }
  sync();
  squares = 0.0F;
  SHUNT_UNROLL
  for (std::uint32_t warp = 0; warp < kWarps; ++warp) {
    largest = kernel_math::max(largest, parts[0][warp][lane() % kLinearXTilesRows]);
    squares += parts[1][warp][lane() % kLinearXTilesRows];
  }

  const std::int32_t exponent = exponent_of(largest);
  const float scale = kernel_math::power_of_two(exponent);
  std::uint8_t* const tiles = rows.tiles();
  const std::uint64_t part_bytes = eights * kLinearPieceBytes;
  const auto put_at = [&](std::uint32_t column, const Sixteen& sixteen) {
    const std::uint64_t piece = std::uint64_t{column / kLinearPieceColumns} * halves * eights + row / kLinearPieceRows;
    put<halves>(tiles + piece * kLinearPieceBytes +
                    column % kLinearPieceColumns * std::uint64_t{kLinearPieceRows} * 2U + row % kLinearPieceRows * 16U,
                part_bytes, sixteen, scale);
  };
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kHeld; ++i) {
    const std::uint32_t column = first + i * kThreadsOfRow * kColumns;
    if (column < k) put_at(column, held[i]);
  }
  for (std::uint32_t column = first + kHeld * kThreadsOfRow * kColumns; column < k; column += kThreadsOfRow * kColumns)
    put_at(column, in.read(column, squares));
  if (lane() >= kLinearXTilesRows) return;
  float factor = kernel_math::power_of_two(-exponent);
  if (norm != nullptr) factor *= 1.0F / kernel_math::sqrt(squares / static_cast<float>(k) + rows.epsilon());
  rows.factors()[row] = factor;
}

}  // namespace
}  // namespace shunt
