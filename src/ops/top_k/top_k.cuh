// Keys that order the columns of a row.
#pragma once

#include "ops/top_k/top_k_args.h"

#include "ops/kernel.cuh"

namespace shunt {
namespace {

struct Row {
  const void* x;
  std::uint64_t begin;
  std::uint64_t stride;
  std::uint32_t dtype;
  std::uint32_t columns;
  std::uint32_t index_bits;  // of a key
  std::uint32_t nan_order;   // the least or the greatest, which no number has
};

// Returns a number that is greater for greater values, and equal for both zeros.
SHUNT_FUNCTION std::uint32_t order_of(const Row& row, float value) {
  const std::uint32_t bits = kernel_math::bits_of(value == 0.0F ? 0.0F : value);
  const std::uint32_t order = (bits & 0x80000000U) != 0U ? ~bits : bits | 0x80000000U;
  return value != value ? row.nan_order : order;
}
// Returns a number that is greater for the column that comes first: greater values, then lower indices.
SHUNT_FUNCTION std::uint64_t key_of(const Row& row, std::uint32_t column, float value) {
  return (std::uint64_t{order_of(row, value)} << row.index_bits) + (row.columns - 1 - column);
}
SHUNT_FUNCTION float value_at(const Row& row, std::uint32_t column) {
  return load(row.dtype, row.x, row.begin + column * row.stride);
}
SHUNT_FUNCTION std::uint64_t key_of(const Row& row, std::uint32_t column) {
  return key_of(row, column, value_at(row, column));
}
SHUNT_FUNCTION Row row_of(const CudaCall* call, std::uint64_t number) {
  const auto& args = arguments_of<TopKArgs>(call);
  const std::uint32_t columns = args.x.extents[3];
  std::uint32_t index_bits = 0;
  while (std::uint64_t{1} << index_bits < columns) ++index_bits;
  return {
      input_of<void>(call, 0),         row_offset(args.x, number), args.x.strides[3], args.x.dtype, columns, index_bits,
      args.with_values != 0 ? ~0U : 0U};
}

}  // namespace
}  // namespace shunt
