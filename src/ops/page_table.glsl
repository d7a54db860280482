// Lookups in the page table of page_table_args.h.
#include "ops/page_table_args.h"

const uint kNoSlot = 0xFFFFFFFFu;

uint sequence_capacity(PageTable table, int sequence) {
  if (sequence < 0 || uint(sequence) >= table.sequences) return 0u;
  return table.sequence_pages * table.page_tokens;
}

// Returns the index of a position's page in the page table. REQUIRES: `position` is below the sequence's capacity.
uint page_entry(PageTable table, int sequence, uint position) {
  return uint(sequence) * table.table_strides.x + position / table.page_tokens * table.table_strides.y;
}

uint slot_in_page(PageTable table, int page, uint position) {
  if (page < 0 || uint(page) >= table.pages) return kNoSlot;
  return uint(page) * table.page_tokens + position % table.page_tokens;
}
