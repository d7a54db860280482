// Copies from device memory to shared memory that run while the block computes, and shared memory whose size the
// host chooses. For CUDA GPUs of compute capability 8.0 and later; on the host, a copy is done at once.
//
// A thread starts copies, groups them with commit_copies(), and waits for groups in the order in which it made them.
// What other threads copied can be read after they waited and the block met at sync().
#pragma once

#include "ops/kernel.cuh"
#include "ops/warp_product.cuh"

namespace shunt {

#if defined(SHUNT_KERNELS_ON_HOST)
// Returns the block's shared memory of CudaKernel::shared_bytes, at a multiple of 128 bytes.
SHUNT_FUNCTION unsigned char* dynamic_shared() {
  alignas(128) static unsigned char memory[227U << 10U];
  return memory;
}
#else
struct alignas(128) DynamicShared {
  unsigned char bytes[128];
};
extern SHUNT_SHARED DynamicShared shunt_dynamic_shared[];
SHUNT_FUNCTION unsigned char* dynamic_shared() { return shunt_dynamic_shared[0].bytes; }
#endif

// Starts to copy 16 bytes, or writes 16 zeros if the source does not exist. Both addresses are multiples of 16.
SHUNT_FUNCTION void copy_sixteen(SharedAddress to, const void* from, bool exists) {
#if defined(SHUNT_KERNELS_ON_HOST)
  *reinterpret_cast<FourWords*>(to) = exists ? load_four(from) : FourWords{};
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16U : 0U) : "memory");
#endif
}

SHUNT_FUNCTION void commit_copies() {
#if !defined(SHUNT_KERNELS_ON_HOST)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for all of the thread's groups but the last `running`.
template <std::uint32_t running>
SHUNT_FUNCTION void await_copies() {
#if !defined(SHUNT_KERNELS_ON_HOST)
  asm volatile("cp.async.wait_group %0;" ::"n"(running) : "memory");
#endif
}

}  // namespace shunt
