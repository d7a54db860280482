// Replaces the two functions of Highway's library that tests call: Debian has the library for the host only. Arm has
// one instruction set of the SIMD kernels, so there is nothing to choose.
#include "ops/simd_targets.h"

#include <hwy/targets.h>

static_assert(HWY_TARGETS == HWY_STATIC_TARGET);

namespace hwy {

int64_t SupportedTargets() { return HWY_STATIC_TARGET; }
void SetSupportedTargetsForTest(int64_t) {}

}  // namespace hwy
