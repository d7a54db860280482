// Copies from device memory to shared memory that run while the block computes: on CUDA GPUs of compute capability 8.0
// and later. Elsewhere a copy is done at once.
//
// A thread starts copies, groups them with commit_copies(), and waits for groups in the order in which it made them.
// What other threads copied can be read after they waited and the block met at sync().
#pragma once

#include "ops/shared_memory.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define SHUNT_HAS_ASYNC_COPIES
#endif

namespace shunt {

// Starts to copy 16 bytes, or writes 16 zeros if the source does not exist. Both addresses are multiples of 16.
SHUNT_FUNCTION void copy_sixteen(SharedAddress to, const void* from, bool exists) {
#if defined(SHUNT_HAS_ASYNC_COPIES)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16U : 0U) : "memory");
#else
  store_shared(to, exists ? load_four(from) : FourWords{});
#endif
}

SHUNT_FUNCTION void commit_copies() {
#if defined(SHUNT_HAS_ASYNC_COPIES)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for all of the thread's groups but the last `running`.
template <std::uint32_t running>
SHUNT_FUNCTION void await_copies() {
#if defined(SHUNT_HAS_ASYNC_COPIES)
  asm volatile("cp.async.wait_group %0;" ::"n"(running) : "memory");
#endif
}

}  // namespace shunt
