// How far a computed tensor is from the expected one. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "shunt/op.h"

namespace shunt {

struct Comparison {
  // Mean square of the difference over the mean square of what was expected. Elements beyond 1e6 count on their
  // own, by the square of their relative error, so that they do not hide the others; the larger of both stands.
  double error = 0;
  // The first element where one is not a number or infinite and the other is not, or not the same; else empty.
  std::string mismatch;
  // Where they differ most.
  std::size_t worst = 0;
  double expected = 0;
  double actual = 0;
};

// Tiny numbers may become zero on the way.
inline constexpr double kTiny = 1e-30;

// `expected` and `actual` are contiguous tensors of `dtype` with `columns` in each row; differences below `negligible`
// count as none.
[[nodiscard]] Comparison compare(DType dtype, std::uint32_t columns, std::span<const std::byte> expected,
                                 std::span<const std::byte> actual, double negligible = kTiny);

// The largest error that is right for a use of an op: that of its row, and for results in a 16-bit dtype the
// distance of neighbours, since two right results may round to either. The reference of a fused row also rounds
// inner results, which take the dtype of the inputs.
[[nodiscard]] double tolerance_of(Op op, std::span<const Operand* const> inputs, const Operand& output);

}  // namespace shunt
