// Instructions of this processor that no instruction set of the SIMD kernels includes (ops/simd_targets.h).
#pragma once

namespace shunt {

struct CpuFeatures {
  bool avx_vnni = false;
  bool avx512_vnni = false;
  bool gfni = false;              // products of bytes and matrices of bits
  bool amx_bf16 = false;          // matrix tiles of BF16, and AVX-512's conversions to it
  bool arm_dot_products = false;  // dotprod: sums of four products of bytes
  bool arm_matrices = false;      // i8mm: products of small matrices of bytes
};

// Returns the features that both the processor and the system have. Asks once, and with that gets the system's
// permission to use AMX, for all threads of the process; any thread.
[[nodiscard]] const CpuFeatures& cpu_features();

// Makes the process use these instead, which the processor must have; null: its own again. REQUIRES: no kernel runs.
void set_cpu_features_for_test(const CpuFeatures* features);

}  // namespace shunt
