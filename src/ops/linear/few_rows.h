// How the number of token rows decides between row kernels and tiles.
#pragma once

#include "ops/arithmetic.h"
#include "ops/linear/bf16_blocking.h"
#include "ops/linear/byte_blocking.h"
#include "ops/linear/linear_blocking.h"
#include "ops/linear/word_blocking.h"

namespace shunt {

// Returns the most rows that are few, multiplied by a row kernel, where more are multiplied in this arithmetic.
constexpr std::size_t few_rows_beside(Arithmetic many) {
  if (many == Arithmetic::bytes) return kDotRowsBesideBytes;
  if (many == Arithmetic::words) return kDotRowsBesideWords;
  if (many == Arithmetic::bf16) return kDotRowsBesideBf16;
  return many == Arithmetic::bf16x3 ? kDotRowsBesideBf16x3 : kDotRows;
}

// Returns the arithmetic of a batch of so many rows where the largest are multiplied in `many`.
constexpr Arithmetic arithmetic_of_rows(Arithmetic many, bool rounds_weight, std::size_t rows) {
  return many == Arithmetic::words && rounds_weight && rows < kFineRows ? Arithmetic::f32 : many;
}

}  // namespace shunt
