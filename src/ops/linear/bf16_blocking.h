// Block sizes of linear in BF16, and the form of its operands. They are the same for every instruction set, since
// scratch sizes depend on them.
//
// An operand is rounded to BF16 in one part, or in two: the rounded number, and what it lacks, rounded as well. Where
// both operands have two, the products of all parts but the two small ones are as exact as F32 (bf16x3).
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/arithmetic.h"
#include "ops/linear/linear_blocking.h"
#include "ops/matrix_tiles.h"

namespace shunt {

// Up to this many token rows use the dot kernel where more are multiplied in BF16.
inline constexpr std::size_t kDotRowsBesideBf16 = 8;
// The same beside three products of BF16.
inline constexpr std::size_t kDotRowsBesideBf16x3 = 16;

// A strip is 32 rows by 256 elements: the weight's (16 KiB) stays in the first-level cache, and x's of the batch (256
// KiB) in the second, while sums wait in memory.
inline constexpr std::size_t kBf16StripRows = 2 * kMatrixTileRows;
inline constexpr std::size_t kBf16Elements = 256;

// Rows of the weight, the left operand, or of x, the right one.
template <std::size_t kParts>
struct Bf16Strip {
  alignas(64) MatrixStep<kParts> steps[kBf16Elements / kMatrixTileElements];
};

// The steps of a strip with these elements.
constexpr std::size_t bf16_steps(std::size_t elements) {
  return (elements + kMatrixTileElements - 1) / kMatrixTileElements;
}
constexpr std::size_t bf16_blocks(std::size_t k) { return (k + kBf16Elements - 1) / kBf16Elements; }
constexpr std::size_t bf16_strips(std::size_t rows) { return (rows + kBf16StripRows - 1) / kBf16StripRows; }

// Token rows of x in BF16.
template <std::size_t kParts>
struct Bf16X {
  Bf16Strip<kParts>* strips = nullptr;  // [blocks of kBf16Elements][strips of kBf16StripRows rows]
  std::size_t rows = 0;

  [[nodiscard]] Bf16Strip<kParts>& strip(std::size_t block, std::size_t strip) const {
    return strips[block * bf16_strips(rows) + strip];
  }
};

// Returns how many items x is packed in: 16 token rows by kBf16Elements, without those that are not there.
constexpr std::size_t bf16_x_items(std::size_t rows, std::size_t k) {
  return (rows + kMatrixTileRows - 1) / kMatrixTileRows * bf16_blocks(k);
}

// Returns the bytes of `rows` token rows with `k` columns.
constexpr std::size_t bf16_x_bytes(std::size_t rows, std::size_t k, std::size_t parts) {
  return bf16_blocks(k) * bf16_strips(rows) * parts * sizeof(Bf16Strip<1>);
}

// Returns the scratch of a thread: a strip and kBlockRows rows of sums.
constexpr std::size_t bf16_scratch(std::size_t parts) {
  return parts * sizeof(Bf16Strip<1>) + kBlockRows * kSumPitch * sizeof(float);
}

// Calls use<parts of the weight, parts of x>(). A weight of BF16 has one part, which is exact.
template <class Use>
auto with_bf16_parts(Arithmetic arithmetic, DType weight, const Use& use) {
  if (arithmetic == Arithmetic::bf16) return use.template operator()<1, 1>();
  if (weight == DType::BF16) return use.template operator()<1, 2>();
  return use.template operator()<2, 2>();
}

}  // namespace shunt
