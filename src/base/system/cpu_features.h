// Instructions of this processor that no instruction set of the SIMD kernels includes (ops/simd_targets.h).
#pragma once

namespace shunt {

struct CpuFeatures {
  bool avx_vnni = false;
  bool avx512_vnni = false;
};

// Returns the features that both the processor and the system have. Asks once; any thread.
[[nodiscard]] const CpuFeatures& cpu_features();

}  // namespace shunt
