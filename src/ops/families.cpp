#include "ops/kernel.h"

namespace shunt {

#define SHUNT_FAMILY_SCALAR(family) extern const CpuKernel family##_scalar;
#define SHUNT_FAMILY_SIMD(family) extern const CpuKernel family##_scalar, family##_simd;
#include "families.def"
#undef SHUNT_FAMILY_SCALAR
#undef SHUNT_FAMILY_SIMD

const CpuFamily& cpu_family(std::string_view name) {
  static constexpr CpuFamily kNone{"", nullptr, nullptr};
  static constexpr CpuFamily kFamilies[] = {
      kNone,
#define SHUNT_FAMILY_SCALAR(family) {#family, &family##_scalar, nullptr},
#define SHUNT_FAMILY_SIMD(family) {#family, &family##_scalar, &family##_simd},
#include "families.def"
  };
  for (const CpuFamily& family : kFamilies)
    if (family.name == name) return family;
  return kNone;
}

}  // namespace shunt
