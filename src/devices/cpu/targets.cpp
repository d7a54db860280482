#include "devices/cpu/targets.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

namespace shunt::cpu {

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const auto target : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

}  // namespace shunt::cpu
