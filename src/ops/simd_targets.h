// The instruction sets that the SIMD kernels are compiled for; include before any Highway header.
//
// x86: the baseline, SSE4, AVX2 and AVX3 (AVX-512); Arm: NEON. One of them is chosen at run time. SSSE3 is left out,
// because no processor of interest stops there. Targets whose vector length is unknown at compile time (SVE, RVV) are
// left out, because the kernels keep arrays of vectors in registers. So are those that later versions of Highway prefer
// to AVX3 (lower bits), because kernels ask for AVX3 by name.
#pragma once

#if defined(HIGHWAY_HWY_DETECT_TARGETS_H_)
#error "include ops/simd_targets.h before any Highway header"
#endif

// The baseline is 128-bit vectors in plain C++, with every compiler. With gcc before 12.3, Highway avoids it on all
// processors because of a bug seen only on some 32-bit and big-endian ones (gcc bug 106322).
#define HWY_BROKEN_EMU128 0

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | (HWY_AVX3 - 1) | HWY_SVE | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128 | HWY_RVV)
