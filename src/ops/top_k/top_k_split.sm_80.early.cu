// Long rows and few places: several blocks share a row, which is cut into groups of columns. Groups are ordered like
// their largest elements, and a group after the first k has none of the first k elements. The blocks find the largest
// element of each group; the one that ends last chooses groups, then elements of these.
#include "ops/collective.cuh"
#include "ops/early.cuh"
#include "ops/top_k/top_k.cuh"
#include "ops/top_k/top_k_split.h"

namespace shunt {
namespace {

constexpr std::uint32_t kThreads = kTopKSplitThreads;
constexpr std::uint32_t kWarps = kThreads / 32;
constexpr std::uint32_t kGroups = kTopKSplitColumns / kTopKSplitGroup;
constexpr std::uint32_t kGroupBits = 13;
static_assert(kGroups == 1U << kGroupBits && kTopKSplitGroup == 32);

struct Shared {
  std::uint64_t keys[kTopKSplitPlaces];
  std::uint32_t groups[kTopKSplitPlaces];
  std::uint32_t sums[2][kWarps];
  std::uint32_t found;
  std::uint32_t blocks_before;
};

SHUNT_FUNCTION float fresh_value(const Row& row, std::uint32_t column) {
  const std::uint64_t element = row.begin + column * row.stride;
  return row.dtype == dtype::F32 ? fresh_float(static_cast<const float*>(row.x) + element)
                                 : load(row.dtype, row.x, element);
}

// Writes the order of the largest element of each group from `begin` to `end` - 1.
SHUNT_FUNCTION void find_largest(const Row& row, std::uint32_t begin, std::uint32_t end, std::uint32_t* orders) {
  constexpr std::uint32_t kAtOnce = 8;  // whose loads are in flight together
  for (std::uint32_t first = begin + lane() / 32U * kAtOnce; first < end; first += kWarps * kAtOnce) {
    float values[kAtOnce];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t column = (first + i) * kTopKSplitGroup + lane() % 32U;
      values[i] = fresh_value(row, column < row.columns ? column : 0);
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t column = (first + i) * kTopKSplitGroup + lane() % 32U;
      const std::uint32_t order = largest_of_warp(column < row.columns ? order_of(row, values[i]) : 0U);
      if (lane() % 32U == 0 && first + i < end) orders[first + i] = order;
    }
  }
}

// Sums over the block.
class BlockSum {
 public:
  explicit SHUNT_FUNCTION BlockSum(Shared& shared) : shared_(shared) {}
  SHUNT_FUNCTION std::uint32_t of(std::uint32_t value) {
    std::uint32_t* const sums = shared_.sums[turn_];  // sums of the last turn may still be read
    turn_ ^= 1U;
    const std::uint32_t of_warp = sum_of_warp(value);
    if (lane() % 32U == 0) sums[lane() / 32U] = of_warp;
    sync();
    std::uint32_t sum = 0;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kWarps; ++i) sum += sums[i];
    return sum;
  }

 private:
  Shared& shared_;
  std::uint32_t turn_ = 0;
};

// Returns a key that exactly k of the block's keys reach. A thread holds some; those that are not 0 are distinct.
// REQUIRES: at least k of them are not 0.
template <std::uint32_t held>
SHUNT_FUNCTION std::uint64_t least_key(BlockSum& sum, const std::uint64_t (&keys)[held], std::uint32_t bits,
                                       std::uint32_t k) {
  std::uint64_t key = 0;
  std::uint32_t count = held * kThreads;
  for (std::uint64_t bit = std::uint64_t{1} << (bits - 1); count != k; bit /= 2) {
    std::uint32_t mine = 0;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < held; ++i) mine += keys[i] >= (key | bit) ? 1U : 0U;
    const std::uint32_t reaching = sum.of(mine);
    if (reaching < k) continue;
    key |= bit;
    count = reaching;
  }
  return key;
}

// Writes the first k groups, in any order. REQUIRES: there are so many.
template <std::uint32_t held>
SHUNT_FUNCTION void choose_groups(const std::uint32_t* orders, std::uint32_t groups, std::uint32_t k, Shared& shared) {
  std::uint64_t keys[held];
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < held; ++i) {
    const std::uint32_t group = i * kThreads + lane();
    const std::uint64_t order = fresh_word(orders + (group < groups ? group : 0));
    keys[i] = group < groups ? (order << kGroupBits) + (kGroups - 1 - group) + 1 : 0;
  }
  BlockSum sum(shared);
  const std::uint64_t least = least_key(sum, keys, 32 + kGroupBits + 1, k);
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < held; ++i)
    if (keys[i] >= least) shared.groups[count_thread(&shared.found)] = i * kThreads + lane();
}

// Writes the keys of the first k columns of these groups, plus one, in any order.
SHUNT_FUNCTION void choose_columns(const Row& row, std::uint32_t groups, std::uint32_t k, Shared& shared) {
  constexpr std::uint32_t kHeld = kTopKSplitPlaces * kTopKSplitGroup / kThreads;
  float values[kHeld];
  std::uint32_t columns[kHeld];
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kHeld; ++i) {
    const std::uint32_t chosen = (i * kThreads + lane()) / kTopKSplitGroup;
    const std::uint32_t column = chosen < groups ? shared.groups[chosen] * kTopKSplitGroup + lane() % 32U : ~0U;
    columns[i] = column < row.columns ? column : ~0U;
    values[i] = fresh_value(row, column < row.columns ? column : 0);
  }
  std::uint64_t keys[kHeld];
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kHeld; ++i) keys[i] = columns[i] == ~0U ? 0 : key_of(row, columns[i], values[i]) + 1;
  BlockSum sum(shared);
  const std::uint64_t least = least_key(sum, keys, 32 + row.index_bits + 1, k);
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kHeld; ++i)
    if (keys[i] >= least) shared.keys[count_thread(&shared.found)] = keys[i];
}

// Writes the columns of these keys in their order.
SHUNT_FUNCTION void write_places(const CudaCall* call, const Row& row, std::uint64_t number, const Shared& shared) {
  const auto& args = arguments_of<TopKArgs>(call);
  if (lane() >= args.k) return;
  const std::uint64_t key = shared.keys[lane()];
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < args.k; ++i) before += shared.keys[i] > key ? 1U : 0U;
  const auto from_end = static_cast<std::uint32_t>((key - 1U) & ((std::uint64_t{1} << row.index_bits) - 1U));
  const std::uint32_t column = row.columns - 1U - from_end;
  const std::uint64_t place = number * args.k + before;
  if (args.with_values == 0) {
    output_of<std::int32_t>(call)[place] = static_cast<std::int32_t>(column);
    return;
  }
  output_of<float>(call)[2 * place] = fresh_value(row, column);
  output_of<float>(call)[2 * place + 1] = static_cast<float>(column);
}

// Returns whether this block is the last of its row. The largest elements that the others found are then visible.
SHUNT_FUNCTION bool is_last(const CudaCall* call, std::uint64_t number, std::uint32_t splits, Shared& shared) {
  sync();
  if (lane() == 0) {
    auto* const counter = reinterpret_cast<std::uint32_t*>(call->scratch - kCudaCounterBytes) + number;
    shared.found = 0;
    shared.blocks_before = splits == 1 ? 0 : count_block(counter);
    if (splits != 1 && shared.blocks_before + 1 == splits) *counter = 0;
  }
  sync();
  return shared.blocks_before + 1 == splits;
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(top_k_split, shunt::kTopKSplitThreads, 1) {
  using namespace shunt;
  SHUNT_SHARED Shared shared;
  let_next_kernel_begin();
  const auto& args = arguments_of<TopKArgs>(call);
  const std::uint32_t splits = top_k_splits(row_count(args.x));
  const std::uint64_t number = group() / splits;
  const Row row = row_of(call, number);
  const std::uint32_t groups = top_k_split_groups(row.columns);
  wait_for_earlier_kernels();
  if (number >= valid_row_count(args.x, parameters_of(call))) return;
  std::uint32_t* const orders = reinterpret_cast<std::uint32_t*>(call->scratch) + number * groups;
  const std::uint32_t share = (groups + splits - 1) / splits;
  const std::uint32_t begin = static_cast<std::uint32_t>(group() % splits) * share;
  find_largest(row, begin, begin + share < groups ? begin + share : groups, orders);
  if (!is_last(call, number, splits, shared)) return;
  const std::uint32_t chosen = args.k < groups ? args.k : groups;
  constexpr std::uint32_t kHeld = kGroups / kThreads;
  if (groups <= kGroups / 2)
    choose_groups<kHeld / 2>(orders, groups, chosen, shared);
  else
    choose_groups<kHeld>(orders, groups, chosen, shared);
  sync();
  if (lane() == 0) shared.found = 0;
  sync();
  choose_columns(row, chosen, args.k, shared);
  sync();
  write_places(call, row, number, shared);
}
