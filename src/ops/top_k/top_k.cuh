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
};

// Returns a number that is greater for the column that comes first: greater values, then lower indices, NaN last.
SHUNT_FUNCTION std::uint64_t key_of(const Row& row, std::uint32_t column, float value) {
  const std::uint32_t bits = kernel_math::bits_of(value == 0.0F ? 0.0F : value);
  std::uint32_t order = (bits & 0x80000000U) != 0U ? ~bits : bits | 0x80000000U;
  if (value != value) order = 0;  // no other value has this
  return (std::uint64_t{order} << row.index_bits) + (row.columns - 1 - column);
}
SHUNT_FUNCTION std::uint64_t key_of(const Row& row, std::uint32_t column) {
  return key_of(row, column, load(row.dtype, row.x, row.begin + column * row.stride));
}
SHUNT_FUNCTION Row row_of(const CudaCall* call, std::uint64_t number) {
  const auto& args = arguments_of<TopKArgs>(call);
  const std::uint32_t columns = args.x.extents[3];
  std::uint32_t index_bits = 0;
  while (std::uint64_t{1} << index_bits < columns) ++index_bits;
  return {input_of<void>(call, 0), row_offset(args.x, number), args.x.strides[3], args.x.dtype, columns, index_bits};
}

}  // namespace
}  // namespace shunt
