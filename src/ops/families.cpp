#include "ops/kernel.h"

namespace shunt {

#define SHUNT_FAMILY(family) extern const CpuKernel family##_scalar;
#define SHUNT_SIMD_FAMILY(family) extern const CpuKernel family##_simd;
#include "families.def"

namespace {

// Returns null if the family has none.
constexpr const CpuKernel* simd_kernel(std::string_view family) {
#define SHUNT_SIMD_FAMILY(name) \
  if (family == #name) return &name##_simd;
#include "families.def"
  return nullptr;
}

constexpr CpuFamily kFamilies[] = {
#define SHUNT_FAMILY(family) {#family, &family##_scalar, simd_kernel(#family)},
#include "families.def"
};

}  // namespace

const CpuFamily& cpu_family(std::string_view name) {
  static constexpr CpuFamily kNone{"", nullptr, nullptr};
  for (const CpuFamily& family : kFamilies)
    if (family.name == name) return family;
  return kNone;
}

}  // namespace shunt
