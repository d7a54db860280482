// Communication among the threads of a warp, a block or a grid, beyond ops/kernel.cuh. For CUDA GPUs of compute
// capability 8.0 and later, and for the host.
//
// All threads of a warp must call the functions of a warp together, and on the host all warps of a block equally often.
#pragma once

#include "ops/kernel.cuh"

namespace shunt {

// Returns the value that thread `from` (0 to 31) of the warp gave.
SHUNT_FUNCTION std::uint32_t value_of_lane(std::uint32_t value, std::uint32_t from) {
#if defined(SHUNT_KERNELS_ON_HOST)
  static std::uint32_t values[512];
  values[lane()] = value;
  sync_warp();
  const std::uint32_t other = values[lane() / 32U * 32U + from];
  sync_warp();
  return other;
#else
  return static_cast<std::uint32_t>(__nvvm_shfl_sync_idx_i32(~0U, static_cast<int>(value), static_cast<int>(from), 31));
#endif
}

#if defined(SHUNT_KERNELS_ON_HOST)
// Calls take() with the value of each thread of the warp.
template <class Take>
SHUNT_FUNCTION void each_of_warp(std::uint32_t value, Take take) {
  static std::uint32_t values[512];
  values[lane()] = value;
  sync_warp();
  for (std::uint32_t i = 0; i < 32; ++i) take(values[lane() / 32U * 32U + i]);
  sync_warp();
}
#endif

// Returns the smallest, or the largest, value of the warp's threads.
SHUNT_FUNCTION std::uint32_t smallest_of_warp(std::uint32_t value) {
#if defined(SHUNT_KERNELS_ON_HOST)
  std::uint32_t smallest = value;
  each_of_warp(value, [&](std::uint32_t other) { smallest = other < smallest ? other : smallest; });
  return smallest;
#else
  std::uint32_t smallest = 0;
  asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(smallest) : "r"(value));
  return smallest;
#endif
}
SHUNT_FUNCTION std::uint32_t largest_of_warp(std::uint32_t value) { return ~smallest_of_warp(~value); }

SHUNT_FUNCTION std::uint32_t sum_of_warp(std::uint32_t value) {
#if defined(SHUNT_KERNELS_ON_HOST)
  std::uint32_t sum = 0;
  each_of_warp(value, [&](std::uint32_t other) { sum += other; });
  return sum;
#else
  std::uint32_t sum = 0;
  asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(value));
  return sum;
#endif
}

// Waits for the whole block; returns whether `value` was true in any thread.
SHUNT_FUNCTION bool sync_any(bool value) {
#if defined(SHUNT_KERNELS_ON_HOST)
  static std::uint32_t found;
  if (lane() == 0) found = 0;
  sync();
  if (value) found = 1;
  sync();
  const bool any = found != 0;
  sync();
  return any;
#else
  return __nvvm_bar0_or(value ? 1 : 0) != 0;
#endif
}

// Counts a thread that reached this place and returns how many of the block did before. The counter is shared by the
// block.
SHUNT_FUNCTION std::uint32_t count_thread(std::uint32_t* counter) {
#if defined(SHUNT_KERNELS_ON_HOST)
  return (*counter)++;
#else
  std::uint32_t before = 0;
  asm volatile("atom.relaxed.cta.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
#endif
}

// Counts a block that reached this place and returns how many did before. What the block wrote before its last sync()
// is then visible to blocks that count later. REQUIRES: one thread of the block calls it.
SHUNT_FUNCTION std::uint32_t count_block(std::uint32_t* counter) {
#if defined(SHUNT_KERNELS_ON_HOST)
  return (*counter)++;
#else
  std::uint32_t before = 0;
  asm volatile(
      "fence.acq_rel.gpu;\n\t"
      "atom.relaxed.gpu.add.u32 %0, [%1], 1;\n\t"
      "fence.acq_rel.gpu;"
      : "=r"(before)
      : "l"(counter)
      : "memory");
  return before;
#endif
}

}  // namespace shunt
