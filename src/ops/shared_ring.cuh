// Rings in shared memory that some warps fill with bulk copies and others read; and clusters, whose blocks fill each
// other's rings. Needs GPUs of compute capability 9.0.
//
// A stage of a ring has two barriers. The warp that copies waits until all readers have left the stage, expects bytes
// and starts copies; readers wait until it is full. Barriers alternate between two parities, which RingPlace keeps.
// On the host copies take place at once, and a cluster is one block.
#pragma once

#include "ops/bulk_copy.cuh"

namespace shunt {

#if defined(SHUNT_KERNELS_ON_HOST)

struct RingBarrier {
  std::uint32_t arrivals;  // in each phase
  std::uint32_t missing;   // of this phase
  std::int64_t bytes;      // to come
  std::uint32_t parity;

  SHUNT_FUNCTION void start(std::uint32_t count) { *this = {count, count, 0, 0}; }
  SHUNT_FUNCTION void end_if_complete() {
    if (missing != 0 || bytes != 0) return;
    parity ^= 1U;
    missing = arrivals;
  }
  SHUNT_FUNCTION void arrive() {
    --missing;
    end_if_complete();
  }
  SHUNT_FUNCTION void expect(std::uint32_t count) {
    bytes += count;
    arrive();
  }
  SHUNT_FUNCTION bool is_over(std::uint32_t phase) const {
    const bool over = parity != phase;
    if (!over) let_others_run();
    return over;
  }
  SHUNT_FUNCTION void copy(void* to, const void* from, std::uint32_t count) {
    __builtin_memcpy(to, from, count);
    bytes -= count;
    end_if_complete();
  }
  SHUNT_FUNCTION void copy_to_cluster(void* to, const void* from, std::uint32_t count) { copy(to, from, count); }
  SHUNT_FUNCTION void arrive_in_cluster(std::uint32_t) { arrive(); }
};

SHUNT_FUNCTION std::uint32_t cluster_blocks() { return 1; }
SHUNT_FUNCTION std::uint32_t cluster_rank() { return 0; }
SHUNT_FUNCTION void sync_cluster() { sync(); }

#elif defined(__clang__) && defined(__NVPTX__)

// A launch may let blocks that follow each other be a cluster.
SHUNT_FUNCTION std::uint32_t cluster_blocks() {
  std::uint32_t blocks;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  return blocks;
}
SHUNT_FUNCTION std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Waits for all threads of the cluster that have not ended.
SHUNT_FUNCTION void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

struct RingBarrier {
  std::uint64_t word;

  // For one thread, before publish_barriers().
  SHUNT_FUNCTION void start(std::uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals) : "memory");
  }
  SHUNT_FUNCTION void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  // Arrives, and makes the phase last until so many bytes have been copied.
  SHUNT_FUNCTION void expect(std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }
  // Returns whether the phase of this parity is over; may wait for it a while.
  SHUNT_FUNCTION bool is_over(std::uint32_t parity) const {
    std::uint32_t over;
    asm volatile(
        "{\n\t.reg .pred over;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n\t"
        "selp.b32 %0, 1, 0, over;\n\t}"
        : "=r"(over)
        : "r"(shared_address(this)), "r"(parity)
        : "memory");
    return over != 0;
  }
  // Starts a copy. REQUIRES: addresses and `bytes` are multiples of 16.
  SHUNT_FUNCTION void copy(void* to, const void* from, std::uint32_t bytes) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(this))
                 : "memory");
  }
  // Starts a copy to the same place of all blocks of the cluster, each of whose barriers counts it.
  SHUNT_FUNCTION void copy_to_cluster(void* to, const void* from, std::uint32_t bytes) {
    asm volatile(
        "{\n\t.reg .b16 blocks;\n\tcvt.u16.u32 blocks, %4;\n\t"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
        "blocks;\n\t}" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(this)), "r"((1U << cluster_blocks()) - 1U)
        : "memory");
  }
  // Arrives at the same barrier of a block of the cluster.
  SHUNT_FUNCTION void arrive_in_cluster(std::uint32_t rank) {
    asm volatile(
        "{\n\t.reg .b32 remote;\n\t"
        "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t}" ::"r"(shared_address(this)),
        "r"(rank)
        : "memory");
  }
};

#endif

// Where a warp is in a ring of so many stages.
template <std::uint32_t stages>
struct RingPlace {
  std::uint32_t stage = 0;
  std::uint32_t parity = 0;

  SHUNT_FUNCTION void advance() {
    if (++stage != stages) return;
    stage = 0;
    parity ^= 1U;
  }
};

// The barriers of a ring, in shared memory.
template <std::uint32_t stages>
struct RingBarriers {
  RingBarrier full[stages];
  RingBarrier empty[stages];

  // For one thread, before publish_barriers(). `readers` warps leave each stage.
  SHUNT_FUNCTION void start(std::uint32_t readers) {
    for (std::uint32_t i = 0; i < stages; ++i) {
      full[i].start(1);
      empty[i].start(readers);
    }
  }
  // For readers: waits until the stage has been filled.
  SHUNT_FUNCTION void await_full(const RingPlace<stages>& place) const {
    while (!full[place.stage].is_over(place.parity)) {
    }
  }
  // For the warp that copies: waits until the stage may be filled. In the first round it may, since the phase before a
  // barrier's first counts as over.
  SHUNT_FUNCTION void await_empty(const RingPlace<stages>& place) const {
    while (!empty[place.stage].is_over(place.parity ^ 1U)) {
    }
  }
  // For readers: the warp leaves a stage. REQUIRES: all its threads call this.
  SHUNT_FUNCTION void leave(std::uint32_t stage) {
    sync_warp();
    if (lane() % 32U == 0) empty[stage].arrive();
  }
  // The same for a stage that all blocks of the cluster fill.
  SHUNT_FUNCTION void leave_in_cluster(std::uint32_t stage) {
    sync_warp();
    if (lane() % 32U < cluster_blocks()) empty[stage].arrive_in_cluster(lane() % 32U);
  }
};

}  // namespace shunt
