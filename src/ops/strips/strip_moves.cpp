#include "ops/strips/strip_moves.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include "ops/strips.h"

namespace shunt {
namespace {

static_assert(std::endian::native == std::endian::little);

using Words = std::vector<std::uint32_t>;

bool bit_of(const Words& words, std::uint32_t bit) { return (words[bit / 32] >> bit % 32U & 1U) != 0; }

// Returns the chunk that eight rows make.
Words chunk_of(DType dtype, const Words& rows) {
  Words chunk(rows.size());
  rows_to_strips(dtype, strip_chunk(dtype).columns, std::as_bytes(std::span(rows)),
                 std::as_writable_bytes(std::span(chunk)));
  return chunk;
}

// Returns for each bit of a chunk from which bit of the rows it comes. In the k-th of the chunks that it looks at, each
// bit of the rows is bit k of its own number.
std::vector<std::uint32_t> sources_of(DType dtype, const Words& flips) {
  const auto bits = static_cast<std::uint32_t>(flips.size() * 32);
  std::vector<std::uint32_t> sources(bits, 0);
  for (std::uint32_t k = 0; bits >> k != 0; ++k) {
    Words rows(flips.size(), 0);
    for (std::uint32_t bit = 0; bit < bits; ++bit) rows[bit / 32] |= (bit >> k & 1U) << bit % 32U;
    const Words chunk = chunk_of(dtype, rows);
    for (std::uint32_t bit = 0; bit < bits; ++bit)
      if (bit_of(chunk, bit) != bit_of(flips, bit)) sources[bit] |= 1U << k;
  }
  return sources;
}

// Returns the moves that make one word. `sources`: of its 32 bits.
std::vector<StripMove> moves_of(std::span<const std::uint32_t> sources, std::uint32_t part_bytes) {
  std::vector<StripMove> moves;
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    const std::uint32_t row = sources[bit] / 8 / part_bytes;
    const std::uint32_t within = sources[bit] - row * part_bytes * 8;
    const std::uint32_t source = row * ((part_bytes + 3) / 4) + within / 32 + ((within - bit) % 32 << 16U);
    auto move = std::ranges::find(moves, source, &StripMove::source);
    if (move == moves.end()) move = moves.insert(moves.end(), StripMove{.mask = 0, .source = source});
    move->mask |= 1U << bit;
  }
  return moves;
}

}  // namespace

StripMoves strip_moves(DType dtype) {
  const StripChunk chunk = strip_chunk(dtype);
  StripMoves made{.part_bytes = chunk.bytes / kStripRows, .words = chunk.bytes / 4};
  made.table = chunk_of(dtype, Words(made.words, 0));
  const std::vector<std::uint32_t> sources = sources_of(dtype, made.table);
  std::vector<std::vector<StripMove>> moves;
  std::size_t most = 0;
  for (std::uint32_t word = 0; word < made.words; ++word) {
    moves.push_back(moves_of(std::span(sources).subspan(std::size_t{word} * 32, 32), made.part_bytes));
    made.table.push_back(static_cast<std::uint32_t>(moves.back().size()));
    most = std::max(most, moves.back().size());
  }
  for (std::size_t i = 0; i < most; ++i)
    for (const std::vector<StripMove>& of_word : moves) {
      const StripMove move = i < of_word.size() ? of_word[i] : StripMove{};
      made.table.insert(made.table.end(), {move.mask, move.source});
    }
  return made;
}

}  // namespace shunt
