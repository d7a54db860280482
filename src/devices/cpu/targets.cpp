#include "devices/cpu/targets.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

namespace shunt::cpu {

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  // The macro queries the processor only if there is a choice.
  const std::int64_t supported = HWY_SUPPORTED_TARGETS;
  for (std::int64_t left = supported & HWY_TARGETS; left != 0; left &= left - 1)
    names.emplace_back(hwy::TargetName(left & -left));
  return names;
}

}  // namespace shunt::cpu
