// Bulk copies to shared memory with the barriers that tell when they have arrived. Needs GPUs of compute
// capability 9.0.
//
// A barrier is 8 bytes of shared memory. Here each of its phases has one arrival: a thread says how many bytes to
// expect, starts the copies and arrives; the phase ends when all bytes are there. Phases have parity 0, 1, 0, ...
#pragma once

#include "ops/async_copy.cuh"
#include "ops/early.cuh"

namespace shunt {

#if defined(SHUNT_KERNELS_ON_HOST)

// A host barrier counts the phases that ended; copies are done at once.
SHUNT_FUNCTION void start_barrier(std::uint64_t* barrier) { *barrier = 0; }
SHUNT_FUNCTION void publish_barriers() {}
SHUNT_FUNCTION void copy_bytes(void* to, const void* from, std::uint32_t bytes, std::uint64_t*) {
  __builtin_memcpy(to, from, bytes);
}
SHUNT_FUNCTION void copy_expected(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier) {
  copy_bytes(to, from, bytes, barrier);
}
SHUNT_FUNCTION void arrive(std::uint64_t* barrier) { ++*barrier; }
SHUNT_FUNCTION void arrive_expecting(std::uint64_t* barrier, std::uint32_t) { arrive(barrier); }
SHUNT_FUNCTION void wait(std::uint64_t* barrier, std::uint32_t parity) {
  while (*static_cast<volatile std::uint64_t*>(barrier) % 2 == parity) let_others_run();
}
SHUNT_FUNCTION std::uint32_t count_up(std::uint32_t* counter) { return (*counter)++; }

#elif defined(__clang__) && defined(__NVPTX__)

SHUNT_FUNCTION void start_barrier(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
// Makes barriers that this thread started visible to copies. Other threads see them after sync().
SHUNT_FUNCTION void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Starts to copy memory that is read once, in units of 16 bytes. The barrier's phase expects its bytes already.
SHUNT_FUNCTION void copy_expected(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier) {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}
// The same, and adds its bytes to what the phase expects.
SHUNT_FUNCTION void copy_bytes(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
  copy_expected(to, from, bytes, barrier);
}
SHUNT_FUNCTION void arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Arrives at a phase that expects so many bytes, before their copies start.
SHUNT_FUNCTION void arrive_expecting(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Waits for the end of the phase with this parity, or returns if the phase after it has begun.
SHUNT_FUNCTION void wait(std::uint64_t* barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
// Adds 1 to a counter in shared memory and returns what it was. Reads of shared memory that the thread or, before
// sync_warp(), its warp has done come before it, since a warp's accesses of shared memory are done in order.
SHUNT_FUNCTION std::uint32_t count_up(std::uint32_t* counter) {
  std::uint32_t before;
  asm volatile("atom.relaxed.cta.shared::cta.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "r"(shared_address(counter))
               : "memory");
  return before;
}

#endif

}  // namespace shunt
