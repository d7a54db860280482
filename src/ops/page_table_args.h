// Where the tokens of a step lie in paged state [pages, page_tokens, heads, head_dim]: plain data for the
// arguments of every family that reads or writes state, and the one lookup they share; for C++ and CUDA.
//
// Index tensors hold what a caller wrote: every index is checked here before it is used.
#pragma once

#include <cstdint>

namespace shunt {

struct PageTable {
  std::uint32_t pages = 0;  // of the state
  std::uint32_t page_tokens = 1;
  std::uint32_t sequences = 0;       // rows of the table
  std::uint32_t sequence_pages = 0;  // pages of each sequence
  std::uint32_t position_stride = 0;
  std::uint32_t sequence_stride = 0;
  std::uint32_t table_strides[2] = {0, 0};
};
static_assert(sizeof(PageTable) == 32);

inline constexpr std::uint64_t kNoSlot = ~std::uint64_t{0};

// How many positions a sequence can have; 0 for one that is not in the table.
constexpr std::uint64_t sequence_capacity(const PageTable& table, std::int32_t sequence) {
  if (sequence < 0 || static_cast<std::uint32_t>(sequence) >= table.sequences) return 0;
  return std::uint64_t{table.sequence_pages} * table.page_tokens;
}

// The slot page * page_tokens + offset of a position, or kNoSlot where sequence, position or page is out of range.
constexpr std::uint64_t state_slot(const PageTable& table, const std::int32_t* pages, std::int32_t sequence,
                                   std::int64_t position) {
  if (position < 0 || static_cast<std::uint64_t>(position) >= sequence_capacity(table, sequence)) return kNoSlot;
  const auto at = static_cast<std::uint64_t>(position);
  const std::int32_t page = pages[static_cast<std::uint64_t>(sequence) * table.table_strides[0] +
                                  at / table.page_tokens * table.table_strides[1]];
  if (page < 0 || static_cast<std::uint32_t>(page) >= table.pages) return kNoSlot;
  return static_cast<std::uint64_t>(page) * table.page_tokens + at % table.page_tokens;
}

}  // namespace shunt
