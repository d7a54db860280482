// Addresses of shared memory, and shared memory whose size the host chooses.
#pragma once

#include "ops/kernel.cuh"

namespace shunt {

#if defined(SHUNT_KERNELS_ON_HOST)

using SharedAddress = std::uintptr_t;
SHUNT_FUNCTION SharedAddress shared_address(const void* at) { return reinterpret_cast<SharedAddress>(at); }
SHUNT_FUNCTION FourWords load_shared(SharedAddress from) { return *reinterpret_cast<const FourWords*>(from); }
SHUNT_FUNCTION void store_shared(SharedAddress to, const FourWords& four) { *reinterpret_cast<FourWords*>(to) = four; }

// Returns the block's shared memory of CudaKernel::shared_bytes, at a multiple of 128 bytes.
SHUNT_FUNCTION unsigned char* dynamic_shared() {
  alignas(128) static unsigned char memory[227U << 10U];
  return memory;
}

#else

using SharedAddress = std::uint32_t;

#if defined(__HIP__)

template <class T>
using InShared = __attribute__((address_space(3))) T;
SHUNT_FUNCTION SharedAddress shared_address(const void* at) {
  return reinterpret_cast<SharedAddress>((InShared<const char>*)at);  // NOLINT: no other cast changes address spaces
}
SHUNT_FUNCTION FourWords load_shared(SharedAddress from) {
  const auto* const words = reinterpret_cast<InShared<const std::uint32_t>*>(from);
  return {{words[0], words[1], words[2], words[3]}};
}
SHUNT_FUNCTION void store_shared(SharedAddress to, const FourWords& four) {
  auto* const words = reinterpret_cast<InShared<std::uint32_t>*>(to);
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) words[i] = four.words[i];
}

#else

SHUNT_FUNCTION SharedAddress shared_address(const void* at) {
  std::uint64_t address = 0;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(at));
  return static_cast<SharedAddress>(address);
}
// Reads 16 bytes each time, so that a compiler does not keep them in registers over a loop. REQUIRES: the address is a
// multiple of 16.
SHUNT_FUNCTION FourWords load_shared(SharedAddress from) {
  FourWords four;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(four.words[0]), "=r"(four.words[1]), "=r"(four.words[2]), "=r"(four.words[3])
               : "r"(from));
  return four;
}
SHUNT_FUNCTION void store_shared(SharedAddress to, const FourWords& four) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(four.words[0]), "r"(four.words[1]),
               "r"(four.words[2]), "r"(four.words[3])
               : "memory");
}

#endif

struct alignas(128) DynamicShared {
  unsigned char bytes[128];
};
extern SHUNT_SHARED DynamicShared shunt_dynamic_shared[];
SHUNT_FUNCTION unsigned char* dynamic_shared() { return shunt_dynamic_shared[0].bytes; }

#endif

}  // namespace shunt
