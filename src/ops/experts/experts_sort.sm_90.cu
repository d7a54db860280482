// One block sorts the uses of experts by their matrices, in no order among those of one matrix, and lists the tiles in
// which experts_product takes them. Thread e has matrix e.
#include "ops/experts/experts_groups.cuh"

namespace shunt {
namespace {

// Adds up what the threads before this one gave, and this one: for two numbers at a time.
struct Sums {
  std::uint32_t eights;
  std::uint32_t tiles;
};
SHUNT_FUNCTION Sums sums_up_to_thread(Sums own) {
  SHUNT_SHARED Sums shared[kExpertsSortThreads];
  for (std::uint32_t distance = 1; distance < kExpertsSortThreads; distance *= 2) {
    shared[lane()] = own;
    sync();
    if (lane() >= distance) {
      own.eights += shared[lane() - distance].eights;
      own.tiles += shared[lane() - distance].tiles;
    }
    sync();
  }
  return own;
}

template <std::uint32_t halves>
SHUNT_FUNCTION void sort_uses(const CudaCall* call) {
  SHUNT_SHARED std::uint32_t counts[kExpertsMostHeld];
  SHUNT_SHARED std::uint32_t idle;
  const SortedUses<halves> sorted(call);
  const std::uint32_t slot = lane();
  counts[slot] = 0;
  if (slot == 0) idle = 0;
  wait_for_earlier_kernels();
  let_next_kernel_begin();
  sync();
  const std::uint32_t uses = valid_uses(call);
  for (std::uint32_t use = lane(); use < uses; use += kExpertsSortThreads) {
    const std::uint32_t of = slot_of_use(call, use);
    const std::uint32_t before = count_up(of == kNoExpert ? &idle : &counts[of]);
    if (of == kNoExpert) *sorted.idle(before) = use;
  }
  sync();
  const std::uint32_t tile_rows = experts_tile_rows(sorted.args());
  const std::uint32_t count = counts[slot];
  const Sums own{(count + kExpertsEight - 1) / kExpertsEight, (count + tile_rows - 1) / tile_rows};
  const Sums end = sums_up_to_thread(own);
  const std::uint32_t first_eight = end.eights - own.eights;
  for (std::uint32_t i = 0; i < own.tiles; ++i) {
    const std::uint32_t first = i * tile_rows / kExpertsEight;
    const std::uint32_t rest = own.eights - first;
    const std::uint32_t most = tile_rows / kExpertsEight;
    *sorted.tile(end.tiles - own.tiles + i) = {slot, first_eight + first, rest < most ? rest : most, 0};
  }
  for (std::uint32_t row = count; row < own.eights * kExpertsEight; ++row)
    *sorted.use_of(first_eight * kExpertsEight + row) = kNoUse;
  if (slot == kExpertsSortThreads - 1) *sorted.counts() = {end.eights * kExpertsEight, end.tiles, idle, 0};
  counts[slot] = first_eight * kExpertsEight;
  sync();
  for (std::uint32_t use = lane(); use < uses; use += kExpertsSortThreads) {
    const std::uint32_t of = slot_of_use(call, use);
    if (of != kNoExpert) *sorted.use_of(count_up(&counts[of])) = static_cast<std::int32_t>(use);
  }
}

}  // namespace
}  // namespace shunt

SHUNT_BOUNDED_KERNEL(experts_sort_halves, shunt::kExpertsSortThreads, 1) { shunt::sort_uses<1>(call); }
SHUNT_BOUNDED_KERNEL(experts_sort_exact, shunt::kExpertsSortThreads, 1) { shunt::sort_uses<2>(call); }
