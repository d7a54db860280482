// The weight layout `strips`: the blocks of a matrix in the order in which tensor cores of NVIDIA GPUs take them.
//
// A strip is 8 rows. It consists of chunks of columns, one after the other, so that neighbouring strips are one linear
// stream. A chunk has the bytes of its rows' blocks, permuted: first the quants (or numbers), then the scales of the 8
// rows. Quants are split into planes of 1, 2, 4, 8 or 16 bits. In each plane lane 4 g + t of a warp owns some words: of
// row g and of each 16 columns those from 4 t to 4 t + 3. With up to four words a lane, the words of a lane are
// adjacent and lanes follow each other; with eight, the first four of all lanes come first.
//
// Element e (0 to 3) of a lane's four columns, step s (of 16 columns), group i = s / 2 (of 32 columns):
//   16 bits: word s * 2 + e / 2, from bit 16 (e % 2)
//    8 bits: word s, from bit 8 e
//    fewer:  word i / n and p = i % n for the n = 4 / bits groups of a word (one group of nibbles); from bit
//            (first + 4 (s % 2) + bits p + 8 (e / 2) + 16 (e % 2)) mod 32 of it, without `bits p` for nibbles.
//            `first` is the number of lower bits in another plane, so that a rotation brings them together.
//
//   dtype           columns, bytes  planes (bits @ offset)       then for each of the 8 rows, adjacent by kind
//   F16, BF16        64  1024       16 @ 0
//   Q8_0            128  1088       8 @ 0 (quant + 128)          4 scales
//   Q4_0, IQ4_NL    128   576       4 @ 0                        4 scales
//   MXFP4           128   544       4 @ 0                        4 exponents (bytes)
//   Q4_1            128   640       4 @ 0                        4 scales, 4 minima
//   Q5_0            128   704       4 @ 0, 1 @ 512               4 scales
//   Q5_1            128   768       4 @ 0, 1 @ 512               4 scales, 4 minima
//   Q4_K            256  1152       4 @ 0                        16 bytes: scale, min, three words of group scales
//   Q5_K            256  1408       4 @ 0, 1 @ 1024              the same
//   Q6_K            256  1680       4 @ 0, 2 @ 1024              16 group scales (+ 128); after all rows': scale
//   Q2_K            256   672       2 @ 0                        16 bytes of group scales; after all rows': scale, min
//   Q3_K            256   880       2 @ 0, 1 @ 512               12 bytes of group scales; after all: scale
//   IQ4_XS          256  1088       4 @ 0                        scale, 6 bytes of group scales
//
// Scales and minima are F16. Group scales are packed so that those of two neighbouring groups, an even and an odd one,
// are 16 bits apart: the two halves of a word. Of the pairs p = (group 2 p, group 2 p + 1), by bits of the lower half:
//   Q4_K, Q5_K  three words: scales of pair p in bits 6 (p % 2) of word p / 2, the high two bits of its minima in bits
//               12 + 2 (p % 2) there, the low four in bits 4 p of word 2
//   Q2_K        four words: scales of pair p in bits 4 (p % 4) of word p / 4, minima of word 2 + p / 4
//   Q3_K        three words: pair p < 3 in bits 0 of word p, pair 4 + p in bits 6; of pairs 3 and 7 the low four bits
//               in bits 12 of words 0 and 1, the high two in bits 12 and 14 of word 2
//   Q6_K        four words: pair p in bits 8 (p / 4) of word p % 4
//   IQ4_XS      two bytes and a word: pairs 0 and 1 in bits 0 and 6 of the word; pair 2 in the low six bits of the two
//               bytes; of pair 3 the low two bits in the bytes, the others in bits 12 of the word
//
// Pure functions of their arguments; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shunt/tensor.h"

namespace shunt {

inline constexpr std::uint32_t kStripRows = 8;
// Kernels take two strips at a time.
inline constexpr std::uint32_t kStripRowsTogether = 16;

struct StripChunk {
  std::uint32_t columns = 0;  // 0: the dtype has no strips
  std::uint32_t bytes = 0;    // of 8 rows
};
[[nodiscard]] StripChunk strip_chunk(DType dtype);

// Returns whether a matrix can be laid out as strips; it then has as many bytes as in rows.
[[nodiscard]] bool has_strips(DType dtype, std::uint64_t rows, std::uint64_t columns);

// Lays out whole strips, and restores their rows. REQUIRES: rows is a multiple of 8, columns of the chunk's; both spans
// have the bytes of `rows` rows and do not overlap.
void rows_to_strips(DType dtype, std::uint64_t columns, std::span<const std::byte> rows, std::span<std::byte> strips);
void strips_to_rows(DType dtype, std::uint64_t columns, std::span<const std::byte> strips, std::span<std::byte> rows);

}  // namespace shunt
