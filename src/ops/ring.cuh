// Rings in shared memory that one warp fills with bulk copies and others read. For GPUs of compute capability 9.0 and
// later.
//
// A ring has stages; each has two barriers. The warp that copies waits until `empty` says that all reading warps have
// left the stage, announces its bytes at `full`, and copies; readers wait for `full`. A barrier alternates between two
// phases, whose number's lowest bit is the parity that RingPlace keeps.
// On the host copies take place at once.
#pragma once

#include "ops/bulk_copy.cuh"

namespace shunt {

#if defined(SHUNT_KERNELS_ON_HOST)

// The threads of a warp arrive one by one, since nothing on the host keeps them together.
inline constexpr std::uint32_t kArrivalsOfWarp = 32;

struct Barrier {
  std::uint32_t arrivals;  // in each phase
  std::uint32_t missing;   // of this phase
  std::int64_t bytes;      // to come
  std::uint32_t parity;
};

SHUNT_FUNCTION void start_barrier(Barrier* barrier, std::uint32_t arrivals) { *barrier = {arrivals, arrivals, 0, 0}; }
SHUNT_FUNCTION void complete_phase(Barrier* barrier) {
  if (barrier->missing != 0 || barrier->bytes != 0) return;
  barrier->parity ^= 1U;
  barrier->missing = barrier->arrivals;
}
SHUNT_FUNCTION void arrive(Barrier* barrier) {
  --barrier->missing;
  complete_phase(barrier);
}
SHUNT_FUNCTION void expect_bytes(Barrier* barrier, std::uint32_t bytes) {
  barrier->bytes += bytes;
  arrive(barrier);
}
SHUNT_FUNCTION void copy_bulk(void* to, const void* from, std::uint32_t bytes, Barrier* barrier) {
  __builtin_memcpy(to, from, bytes);
  barrier->bytes -= bytes;
  complete_phase(barrier);
}
SHUNT_FUNCTION bool is_over(const Barrier* barrier, std::uint32_t parity) {
  const bool over = barrier->parity != parity;
  if (!over) let_others_run();
  return over;
}
SHUNT_FUNCTION void leave(Barrier* empty) { arrive(empty); }

#else

inline constexpr std::uint32_t kArrivalsOfWarp = 1;

struct Barrier {
  std::uint64_t word;
};

SHUNT_FUNCTION void start_barrier(Barrier* barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
SHUNT_FUNCTION void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Arrives, and makes the phase last until so many bytes have been copied.
SHUNT_FUNCTION void expect_bytes(Barrier* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Starts a copy to shared memory. REQUIRES: addresses and `bytes` are multiples of 16.
SHUNT_FUNCTION void copy_bulk(void* to, const void* from, std::uint32_t bytes, Barrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
// Returns whether the phase of this parity is over; may wait for it a while.
SHUNT_FUNCTION bool is_over(const Barrier* barrier, std::uint32_t parity) {
  std::uint32_t over;
  asm volatile(
      "{\n\t.reg .pred over;\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, over;\n\t}"
      : "=r"(over)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return over != 0;
}
// The warp has read a stage and leaves it. REQUIRES: all its threads call this.
SHUNT_FUNCTION void leave(Barrier* empty) {
  sync_warp();
  if (lane() % 32U == 0) arrive(empty);
}

#endif

SHUNT_FUNCTION void await(const Barrier* barrier, std::uint32_t parity) {
  while (!is_over(barrier, parity)) {
  }
}

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
  Barrier full[stages];
  Barrier empty[stages];

  // For one thread, before publish_barriers(). `readers` warps leave each stage.
  SHUNT_FUNCTION void start(std::uint32_t readers) {
    for (std::uint32_t i = 0; i < stages; ++i) {
      start_barrier(&full[i], 1);
      start_barrier(&empty[i], readers * kArrivalsOfWarp);
    }
  }
  // For readers: waits until the stage has been filled.
  SHUNT_FUNCTION void await_full(const RingPlace<stages>& place) const { await(&full[place.stage], place.parity); }
  // For the warp that copies: waits until the stage may be filled. In the first round it may, since the phase before a
  // barrier's first counts as over.
  SHUNT_FUNCTION void await_empty(const RingPlace<stages>& place) const {
    await(&empty[place.stage], place.parity ^ 1U);
  }
};

}  // namespace shunt
