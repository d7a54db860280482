// Runs a test body once for each instruction set of the SIMD kernels that this machine supports.
//
// The baseline of x86 is plain C++ with vectors as long as those of SSE4. It takes ten times as long, so where SSE4 is
// supported, only tests of whole devices run it: for_each_simd_target_and_baseline().
#pragma once

#include "ops/simd_targets.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

#include "base/system/cpu_features.h"

namespace shunt::test {

// Returns those of the kernels; for any other one that the processor supports, Highway would run the baseline.
inline std::int64_t simd_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

template <class Body>
void for_each_of(std::int64_t targets, Body body) {
  for (std::int64_t rest = targets; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

// REQUIRES: no kernel runs on another thread at the same time.
template <class Body>
void for_each_simd_target(Body body) {
  const std::int64_t all = simd_targets();
  for_each_of((all & HWY_SSE4) != 0 ? all & ~HWY_EMU128 : all, body);
}

// REQUIRES: as above.
template <class Body>
void for_each_simd_target_and_baseline(Body body) {
  for_each_of(simd_targets(), body);
}

// Runs a test body with AVX-512 as if the processor had no matrix tiles, again as if it had no GFNI either, and no
// VNNI; not at all if it has none. REQUIRES: no kernel runs on another thread at the same time.
template <class Body>
void for_each_fewer_features(Body body) {
  CpuFeatures fewer = cpu_features();
  for (bool* const feature : {&fewer.amx_bf16, &fewer.gfni, &fewer.avx512_vnni}) {
    if (!*feature) continue;
    *feature = false;
    SCOPED_TRACE(fewer.gfni          ? "without AMX"
                 : fewer.avx512_vnni ? "without AMX and GFNI"
                                     : "without AMX, GFNI and VNNI");
    set_cpu_features_for_test(&fewer);
    hwy::SetSupportedTargetsForTest(HWY_AVX3);
    body();
    hwy::SetSupportedTargetsForTest(0);
    set_cpu_features_for_test(nullptr);
  }
}

}  // namespace shunt::test
