// Copies from device memory to shared memory that run while the block computes. For CUDA GPUs of compute capability 8.0
// and later; on AMD's and on the host, a copy is done at once.
//
// A thread starts copies, groups them with commit_copies(), and waits for groups in the order in which it made them.
// What other threads copied can be read after they waited and the block met at sync().
#pragma once

#include "ops/shared_memory.cuh"

namespace shunt {

// Starts to copy 16 bytes, or writes 16 zeros if the source does not exist. Both addresses are multiples of 16.
SHUNT_FUNCTION void copy_sixteen(SharedAddress to, const void* from, bool exists) {
#if defined(SHUNT_KERNELS_ON_HOST) || defined(__HIP__)
  store_shared(to, exists ? load_four(from) : FourWords{});
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16U : 0U) : "memory");
#endif
}

SHUNT_FUNCTION void commit_copies() {
#if defined(__NVPTX__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for all of the thread's groups but the last `running`.
template <std::uint32_t running>
SHUNT_FUNCTION void await_copies() {
#if defined(__NVPTX__)
  asm volatile("cp.async.wait_group %0;" ::"n"(running) : "memory");
#endif
}

}  // namespace shunt
