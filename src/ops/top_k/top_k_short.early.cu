// Short rows and few places: a warp finds a row's places one after the other.
#include "ops/early.cuh"
#include "ops/top_k/top_k.cuh"

namespace shunt {
namespace {

// Returns the largest of the warp's keys.
SHUNT_FUNCTION std::uint64_t largest_of_warp(std::uint64_t key) {
  SHUNT_UNROLL
  for (std::uint32_t mask = 16; mask != 0; mask /= 2) {
    const float low = from_lane(__builtin_bit_cast(float, static_cast<std::uint32_t>(key)), mask);
    const float high = from_lane(__builtin_bit_cast(float, static_cast<std::uint32_t>(key >> 32U)), mask);
    const std::uint64_t other =
        std::uint64_t{__builtin_bit_cast(std::uint32_t, high)} << 32U | __builtin_bit_cast(std::uint32_t, low);
    key = other > key ? other : key;
  }
  return key;
}

// Reads every 32nd column, from the thread's on. The loads are unconditional, so that all are in flight before the
// first is used.
template <std::uint32_t count, class Read>
SHUNT_FUNCTION void read_values(const Row& row, float (&values)[count], Read read) {
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t column = lane() % 32U + i * 32U;
    values[i] = read(row.begin + (column < row.columns ? column : 0) * row.stride);
  }
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(top_k_short, shunt::kTopKShortThreads, 4) {
  using namespace shunt;
  let_next_kernel_begin();
  constexpr std::uint32_t kHeld = kTopKShortColumns / 32;
  const auto& args = arguments_of<TopKArgs>(call);
  const std::uint64_t number = group() * (kTopKShortThreads / 32) + lane() / 32U;
  const bool exists = number < valid_row_count(args.x, parameters_of(call));
  const Row row = row_of(call, number);
  wait_for_earlier_kernels();
  if (!exists || row.columns == 0) return;
  float values[kHeld];
  if (row.dtype == dtype::F32)
    read_values(row, values,
                [&](std::uint64_t element) { return fresh_float(static_cast<const float*>(row.x) + element); });
  else
    read_values(row, values, [&](std::uint64_t element) { return load(row.dtype, row.x, element); });
  std::uint64_t keys[kHeld];  // plus one: 0 is no column
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kHeld; ++i) {
    const std::uint32_t column = lane() % 32U + i * 32U;
    keys[i] = column < row.columns ? key_of(row, column, values[i]) + 1U : 0U;
  }
  std::uint64_t last = ~std::uint64_t{0};
  for (std::uint32_t place = 0; place < args.k; ++place) {
    std::uint64_t best = 0;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kHeld; ++i) best = keys[i] < last && keys[i] > best ? keys[i] : best;
    last = largest_of_warp(best);
    const auto from_end = static_cast<std::uint32_t>((last - 1U) & ((std::uint64_t{1} << row.index_bits) - 1U));
    if (lane() % 32U == 0)
      output_of<std::int32_t>(call)[number * args.k + place] = static_cast<std::int32_t>(row.columns - 1U - from_end);
  }
}
