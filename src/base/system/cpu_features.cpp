#include "base/system/cpu_features.h"

namespace shunt {

const CpuFeatures& cpu_features() {
  static const CpuFeatures kFeatures = [] {
    CpuFeatures found;
#if defined(__x86_64__)
    found.avx_vnni = __builtin_cpu_supports("avxvnni") != 0;
    found.avx512_vnni = __builtin_cpu_supports("avx512vnni") != 0;
#endif
    return found;
  }();
  return kFeatures;
}

}  // namespace shunt
