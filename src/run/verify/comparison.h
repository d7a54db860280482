// Measures how far a computed tensor is from the expected one. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ops/arithmetic.h"

namespace shunt {

struct Comparison {
  // Mean square of the difference over the mean square of the expected values. Elements beyond 1e6 count separately, by
  // the square of their relative error, so that they do not hide the others. The larger of the two is the error.
  double error = 0;
  // The first element where the two are not both finite, the same infinity, or both not a number; else empty.
  std::string mismatch;
  // The element where they differ most.
  std::size_t worst = 0;
  double expected = 0;
  double actual = 0;
};

// Tiny numbers may be flushed to zero.
inline constexpr double kTiny = 1e-30;

// `expected` and `actual` are contiguous tensors of `dtype` with `columns` in each row. Differences below `negligible`
// count as none.
[[nodiscard]] Comparison compare(DType dtype, std::uint32_t columns, std::span<const std::byte> expected,
                                 std::span<const std::byte> actual, double negligible = kTiny);

// The largest error that is right for a use of an op: the tolerance of its row, or the error of the arithmetic of its
// products if that is more. Results in a 16-bit dtype may differ by
// the distance of neighbours, if that is more, since two right results may round to either; so may those of a fused op
// in a cache's blocks. The reference of a fused op also rounds inner results, which take the dtype of the inputs.
[[nodiscard]] double tolerance_of(const OpCall& call, Arithmetic arithmetic);

}  // namespace shunt
