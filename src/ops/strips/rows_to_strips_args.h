// Arguments of rows_to_strips, which lays out rows of blocks as strips (ops/strips.h): its input is whole strips of
// rows, its constants are the table of StripMoves, its result is the strips.
#pragma once

#include "ops/args.h"

SHUNT_ARGS(RowsToStripsArgs) {
  SHUNT_U32(part_bytes);  // of a row in a chunk; even
  SHUNT_U32(chunks);      // of a strip
  SHUNT_U32(words);       // of a chunk
  SHUNT_U32(reserved);
};
SHUNT_ARGS_BYTES(RowsToStripsArgs, 16)

namespace shunt {

inline constexpr std::uint32_t kRowsToStripsThreads = 128;

// Bits of a word of a chunk that come from one word of its rows.
struct alignas(8) StripMove {
  std::uint32_t mask = 0;    // in the chunk
  std::uint32_t source = 0;  // the number of the rows' word, and from bit 16 on by how much it is rotated to the right
};

// The most words of a chunk's rows.
inline constexpr std::uint32_t kMostStripSourceWords = 424;

}  // namespace shunt
