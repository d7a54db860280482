// A block finds the places of one row: it searches for the least key that is among the first k, bit by bit, and sorts
// the columns from there on.
#include "ops/sort.cuh"
#include "ops/top_k/top_k.cuh"

namespace shunt {
namespace {

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

// Replaces k ids, which are the second half of `pairs`, by pairs of a value and its index. Pairs that are written cover
// ids that were read.
SHUNT_FUNCTION void write_pairs(const Row& row, std::uint32_t k, float* pairs) {
  const auto* const ids = reinterpret_cast<const std::int32_t*>(pairs) + k;
  for (std::uint64_t first = 0; first < k; first += kGroup) {
    const std::uint64_t place = first + lane();
    const auto column = place < k ? static_cast<std::uint32_t>(ids[place]) : 0U;
    sync();
    if (place < k) {
      pairs[2 * place] = value_at(row, column);
      pairs[2 * place + 1] = static_cast<float>(column);
    }
    sync();
  }
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(top_k) {
  using namespace shunt;
  const auto& args = arguments_of<TopKArgs>(call);
  const std::uint64_t number = group();
  if (number >= valid_row_count(args.x, parameters_of(call))) return;
  const Row row = row_of(call, number);
  const bool with_values = args.with_values != 0;
  std::int32_t* const ids = output_of<std::int32_t>(call) + (with_values ? 2 * number + 1 : number) * args.k;
  collect(row, least_key(row, args.k), ids);
  sort_ids(ids, args.k, [&](std::int32_t a, std::int32_t b) {
    return key_of(row, static_cast<std::uint32_t>(a)) > key_of(row, static_cast<std::uint32_t>(b));
  });
  if (with_values) write_pairs(row, args.k, output_of<float>(call) + 2 * number * args.k);
}
