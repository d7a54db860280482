// A block finds the places of one row: it searches for the least key that is among the first k, bit by bit, and sorts
// the columns from there on.
#include "ops/top_k/top_k_args.h"

#include "ops/sort.cuh"

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
SHUNT_FUNCTION std::uint64_t key_of(const Row& row, std::uint32_t column) {
  const float value = load(row.dtype, row.x, row.begin + column * row.stride);
  const std::uint32_t bits = kernel_math::bits_of(value == 0.0F ? 0.0F : value);
  std::uint32_t order = (bits & 0x80000000U) != 0U ? ~bits : bits | 0x80000000U;
  if (value != value) order = 0;  // no other value has this
  return (std::uint64_t{order} << row.index_bits) + (row.columns - 1 - column);
}

// Returns how many columns of this thread have at least this key.
SHUNT_FUNCTION std::uint32_t columns_from(const Row& row, std::uint64_t key) {
  std::uint32_t count = 0;
  for (std::uint64_t column = lane(); column < row.columns; column += kGroup)
    count += key_of(row, static_cast<std::uint32_t>(column)) >= key ? 1U : 0U;
  return count;
}

// Returns a key that exactly k columns reach. Keys are distinct, so there is one. REQUIRES: 0 < k <= columns.
SHUNT_FUNCTION std::uint64_t least_key(const Row& row, std::uint32_t k) {
  std::uint64_t key = 0;
  std::uint32_t count = row.columns;
  for (std::uint64_t bit = std::uint64_t{1} << (31U + row.index_bits); count != k; bit /= 2) {
    const std::uint32_t reaching = sum_of_group(columns_from(row, key | bit));
    if (reaching < k) continue;
    key |= bit;
    count = reaching;
  }
  return key;
}

// Writes the columns that reach the key, in any order.
SHUNT_FUNCTION void collect(const Row& row, std::uint64_t key, std::int32_t* ids) {
  SHUNT_SHARED std::uint32_t counts[kGroup];
  counts[lane()] = columns_from(row, key);
  sync();
  std::uint64_t place = 0;
  for (std::uint32_t i = 0; i < lane(); ++i) place += counts[i];
  for (std::uint64_t column = lane(); column < row.columns; column += kGroup)
    if (key_of(row, static_cast<std::uint32_t>(column)) >= key) ids[place++] = static_cast<std::int32_t>(column);
  sync();
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(top_k) {
  using namespace shunt;
  const auto& args = arguments_of<TopKArgs>(call);
  const std::uint64_t number = group();
  if (number >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint32_t columns = args.x.extents[3];
  std::uint32_t index_bits = 0;
  while (std::uint64_t{1} << index_bits < columns) ++index_bits;
  const Row row{
      input_of<void>(call, 0), row_offset(args.x, number), args.x.strides[3], args.x.dtype, columns, index_bits};
  std::int32_t* const ids = output_of<std::int32_t>(call) + number * args.k;
  collect(row, least_key(row, args.k), ids);
  sort_ids(ids, args.k, [&](std::int32_t a, std::int32_t b) {
    return key_of(row, static_cast<std::uint32_t>(a)) > key_of(row, static_cast<std::uint32_t>(b));
  });
}
