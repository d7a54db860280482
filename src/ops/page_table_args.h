// The places of a step's tokens in paged state [pages, page_tokens, heads, head_dim].
//
// PageTable is plain data for the arguments of every family that reads or writes state. The lookup here is for C++ and
// CUDA; page_table.glsl has the GLSL one. Callers write the index tensors, so the lookup checks every index before use.
#pragma once

#include "ops/args.h"

SHUNT_ARGS(PageTable) {
  SHUNT_U32(pages);  // of the state
  SHUNT_U32(page_tokens);
  SHUNT_U32(sequences);       // rows of the table
  SHUNT_U32(sequence_pages);  // pages of each sequence
  SHUNT_U32(position_stride);
  SHUNT_U32(sequence_stride);
  SHUNT_U32S(2, table_strides);
};
SHUNT_ARGS_BYTES(PageTable, 32)

#ifndef SHUNT_GLSL
namespace shunt {

inline constexpr std::uint64_t kNoSlot = ~std::uint64_t{0};

// Returns how many positions a sequence can have; 0 if it is not in the table.
constexpr std::uint64_t sequence_capacity(const PageTable& table, std::int32_t sequence) {
  if (sequence < 0 || static_cast<std::uint32_t>(sequence) >= table.sequences) return 0;
  return std::uint64_t{table.sequence_pages} * table.page_tokens;
}

// Returns slot page * page_tokens + offset of a position, or kNoSlot if sequence, position or page is out of range.
// `pages` has the table's numbers by index. REQUIRES: `position` fits 32 bits.
template <class Pages>
constexpr std::uint64_t state_slot(const PageTable& table, const Pages& pages, std::int32_t sequence,
                                   std::int64_t position) {
  if (position < 0 || static_cast<std::uint64_t>(position) >= sequence_capacity(table, sequence)) return kNoSlot;
  const auto at = static_cast<std::uint32_t>(position);  // GPUs divide 64 bits slowly
  const std::int32_t page = pages[static_cast<std::uint64_t>(sequence) * table.table_strides[0] +
                                  std::uint64_t{at / table.page_tokens} * table.table_strides[1]];
  if (page < 0 || static_cast<std::uint32_t>(page) >= table.pages) return kNoSlot;
  return static_cast<std::uint64_t>(page) * table.page_tokens + at % table.page_tokens;
}

}  // namespace shunt
#endif
