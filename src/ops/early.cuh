// How a kernel overlaps with the one before it in the stream, on GPUs of compute capability 9.0 and newer.
//
// A kernel that was launched programmatically may begin before the one before it ends. It calls
// wait_for_earlier_kernels() before it reads what they wrote or writes what they read; afterwards it sees all that they
// wrote. At least one block must call it, even if there is nothing to do: the kernel after it waits for this one alone.
// On other launches and GPUs the calls do nothing.
#pragma once

#include "ops/kernel.cuh"

namespace shunt {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
SHUNT_FUNCTION void wait_for_earlier_kernels() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
SHUNT_FUNCTION void let_next_kernel_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
#else
SHUNT_FUNCTION void wait_for_earlier_kernels() {}
SHUNT_FUNCTION void let_next_kernel_begin() {}
#endif

// Waits before reading some inputs (bits of a mask), unless no earlier kernel writes them.
SHUNT_FUNCTION void wait_to_read(const CudaCall* call, std::uint32_t inputs) {
  if ((call->unwritten & inputs) != inputs) wait_for_earlier_kernels();
}

// Returns the block's call, by the copies among the kernel's parameters where these need not be copied to local memory
// first, as hipcc does with those that a kernel chooses among.
SHUNT_FUNCTION CallOfBlock call_of(const CudaCall* call, const CudaCopies& copies, const CudaShares& shares) {
#if defined(__HIP__)
  static_cast<void>(copies);
  return call_of_block(call, shares);
#else
  static_cast<void>(call);
  return call_in(copies, shares);
#endif
}

// Reads past the first-level cache, for what a block reads once.
#if defined(__clang__) && defined(__NVPTX__)
SHUNT_FUNCTION float fresh_float(const float* x) {
  float value;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(x));
  return value;
}
// REQUIRES: a Word has 32 bits.
template <class Word>
SHUNT_FUNCTION std::uint32_t fresh_word(const Word* x) {
  std::uint32_t value;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(x));
  return value;
}
// With one access if they begin at a multiple of 16 bytes.
SHUNT_FUNCTION FourFloats fresh_four(const float* x, bool in_sixteens) {
  if (!in_sixteens) return {{fresh_float(x), fresh_float(x + 1), fresh_float(x + 2), fresh_float(x + 3)}};
  FourFloats four;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four.values[0]), "=f"(four.values[1]), "=f"(four.values[2]), "=f"(four.values[3])
               : "l"(x));
  return four;
}
#else
SHUNT_FUNCTION float fresh_float(const float* x) { return *x; }
template <class Word>
SHUNT_FUNCTION std::uint32_t fresh_word(const Word* x) {
  return static_cast<std::uint32_t>(*x);
}
SHUNT_FUNCTION FourFloats fresh_four(const float* x, bool in_sixteens) { return read_four(x, in_sixteens); }
#endif

}  // namespace shunt
