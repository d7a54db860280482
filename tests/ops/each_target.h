// Runs a test body once for each instruction set of the SIMD kernels that this machine supports.
#pragma once

#include "ops/simd_targets.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace shunt::test {

// REQUIRES: no kernel runs on another thread at the same time.
template <class Body>
void for_each_simd_target(Body body) {
  for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace shunt::test
