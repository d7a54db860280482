// The instruction sets that the SIMD kernels are compiled for and this processor has.
#pragma once

#include <string>
#include <vector>

namespace shunt::cpu {

// Best first, by Highway's names: "AVX3", "AVX2", "SSE4".
[[nodiscard]] std::vector<std::string> simd_targets();

}  // namespace shunt::cpu
