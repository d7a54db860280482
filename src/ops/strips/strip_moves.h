// The layout `strips` as a table of moved bits, by which a kernel lays out rows of any dtype (rows_to_strips).
//
// A chunk has the bits of its rows in another order, some of them flipped. The table is found from what
// rows_to_strips() makes of a few chunks, so ops/strips.cpp alone knows the order. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/strips/rows_to_strips_args.h"
#include "shunt/tensor.h"

namespace shunt {

struct StripMoves {
  std::uint32_t part_bytes = 0;  // of a row in a chunk
  std::uint32_t words = 0;       // of a chunk
  // For each word the bits that are flipped; then for each its number of moves; then the first StripMove of each word,
  // the second one of each, and so on, empty where a word has no more.
  std::vector<std::uint32_t> table;
};
// REQUIRES: the dtype has strips. Takes about a millisecond.
[[nodiscard]] StripMoves strip_moves(DType dtype);

}  // namespace shunt
