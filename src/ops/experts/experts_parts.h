// How matrices of unlike work are cut into shares. Pure functions; any thread.
//
// The rows of all matrices lie on a line one after the other, each as long as its work. A share has a piece of the
// line: whole matrices, except for its first and its last one. Shares thus have like work, however unevenly experts are
// used, and read long runs of the weights.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/kernel.h"

namespace shunt {

// Calls use(matrix, rows) for the rows of each matrix in one share. Matrices have `m` rows, which are cut at multiples
// of `grain`; work_of(matrix) says what a row takes, and is 0 for matrices that are not multiplied.
template <class WorkOf, class Use>
void for_each_part(std::uint32_t matrices, std::uint64_t m, std::uint64_t grain, std::uint32_t share,
                   std::uint32_t shares, const WorkOf& work_of, const Use& use) {
  const std::uint64_t grains = (m + grain - 1) / grain;
  std::uint64_t length = 0;
  for (std::uint32_t matrix = 0; matrix < matrices; ++matrix) length += work_of(matrix) * grains;
  const Range piece = share_of(length, share, shares);
  std::uint64_t begin = 0;  // of the matrix, on the line
  for (std::uint32_t matrix = 0; matrix < matrices && begin < piece.end; ++matrix) {
    const std::uint64_t work = work_of(matrix);
    if (work == 0) continue;
    // A grain belongs to the piece in which it begins.
    const auto row_from = [&](std::uint64_t at) {
      const std::uint64_t before = at <= begin ? 0 : (at - begin + work - 1) / work;
      return std::min(before * grain, m);
    };
    const Range rows{row_from(piece.begin), row_from(piece.end)};
    if (rows.begin < rows.end) use(matrix, rows);
    begin += work * grains;
  }
}

}  // namespace shunt
