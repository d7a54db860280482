#include "base/system/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace shunt {
namespace {

#if defined(__x86_64__)
constexpr bool has_bit(unsigned value, unsigned bit) { return (value >> bit & 1U) != 0; }

// Returns whether the processor has the instructions (Intel SDM, volume 2, CPUID: leaf 7).
bool processor_has_amx_bf16() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  const bool has_tiles = has_bit(edx, 22) && has_bit(edx, 24);                                  // AMX-BF16 and AMX-TILE
  return has_tiles && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && has_bit(eax, 5);  // AVX512_BF16
}

// Returns whether the system saves the tile registers of threads (XCR0, bits 17 and 18), and lets this process use
// them: Linux does on demand only (Documentation/arch/x86/xstate.rst).
bool system_has_amx() {
#if defined(__linux__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || !has_bit(ecx, 27)) return false;  // OSXSAVE: XGETBV exists
  asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILE_DATA
  return has_bit(eax, 17) && has_bit(eax, 18) && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

const CpuFeatures* for_test = nullptr;

}  // namespace

void set_cpu_features_for_test(const CpuFeatures* features) { for_test = features; }

const CpuFeatures& cpu_features() {
  if (for_test != nullptr) return *for_test;
  static const CpuFeatures kFeatures = [] {
    CpuFeatures found;
#if defined(__x86_64__)
    found.avx_vnni = __builtin_cpu_supports("avxvnni") != 0;
    found.avx512_vnni = __builtin_cpu_supports("avx512vnni") != 0;
    found.gfni = __builtin_cpu_supports("gfni") != 0;
    found.amx_bf16 = processor_has_amx_bf16() && system_has_amx();
#endif
#if defined(__aarch64__) && defined(__linux__)
    found.arm_dot_products = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    found.arm_matrices = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#endif
    return found;
  }();
  return kFeatures;
}

}  // namespace shunt
