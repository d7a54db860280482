#include "ops/page_table.h"

#include "ops/op.h"

namespace shunt {

std::uint64_t cached_head_bytes(DType dtype, std::uint32_t head_dim) {
  const DTypeInfo& info = info_of(dtype);
  return std::uint64_t{head_dim} / info.block_elements * info.block_bytes;
}

PageTable page_table(const Operand& state, const Operand& positions, const Operand& sequences, const Operand& pages) {
  PageTable table;
  table.pages = state.shape[0];
  table.page_tokens = state.shape[1];
  table.sequences = pages.shape[0];
  table.sequence_pages = pages.shape[1];
  table.position_stride = static_cast<std::uint32_t>(positions.strides[0]);
  table.sequence_stride = static_cast<std::uint32_t>(sequences.strides[0]);
  table.table_strides[0] = static_cast<std::uint32_t>(pages.strides[0]);
  table.table_strides[1] = static_cast<std::uint32_t>(pages.strides[1]);
  return table;
}

}  // namespace shunt
