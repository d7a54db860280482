// Which instruction sets the SIMD kernels are compiled for; include before any Highway header.
//
// x86: the baseline, SSE4, AVX2 and AVX3 (AVX-512); Arm: NEON. One of them is chosen at run time. Left out are
// SSSE3 (no processor of interest stops there) and the targets whose vector length is unknown while compiling
// (SVE, RVV): the kernels keep arrays of vectors in registers.
#pragma once

#if defined(HIGHWAY_HWY_DETECT_TARGETS_H_)
#error "include ops/simd_targets.h before any Highway header"
#endif

// The baseline is 128-bit vectors in plain C++ with every compiler. Highway avoids it with gcc before 12.3
// everywhere, for a bug that showed on some 32-bit and big-endian processors only (gcc bug 106322).
#define HWY_BROKEN_EMU128 0

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128 | HWY_RVV)
