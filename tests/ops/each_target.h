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

// REQUIRES: no kernel runs on another thread at the same time.
template <class Body>
void for_each_simd_target_and_baseline(Body body, std::int64_t left_out = 0) {
  // Only those that the kernels are compiled for: for any other, Highway would run the baseline.
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if ((target & left_out) != 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

// REQUIRES: as above.
template <class Body>
void for_each_simd_target(Body body) {
  for_each_simd_target_and_baseline(body, (hwy::SupportedTargets() & HWY_SSE4) != 0 ? HWY_EMU128 : 0);
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
