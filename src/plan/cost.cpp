#include "plan/cost.h"

#include <algorithm>

namespace shunt {
namespace {

// A link that nobody measured: roughly what a PCIe 3 card gives through pageable memory.
constexpr double kPriorLinkLatencyUs = 10;
constexpr double kPriorLinkBytesPerUs = 6e3;
constexpr double kPriorLinkUncertainty = 0.7;

}  // namespace

Prediction predict_compute(const OpCall& call, const DeviceInfo& device) {
  const Cost cost = info_of(call.op).cost_rule(call);
  const double compute_us = cost.flops / device.prior.flops_per_s * 1e6;
  const double memory_us = (cost.bytes_read + cost.bytes_written) / device.prior.bytes_per_s * 1e6;
  const double us = device.prior.op_us + std::max(compute_us, memory_us);
  return {.us = us, .uncertainty_us = us * device.prior.uncertainty};
}

Prediction predict_transfer(std::uint64_t bytes, const DeviceInfo& from, const DeviceInfo& to) {
  if (from.memory_pool == to.memory_pool) return {};
  const double us = kPriorLinkLatencyUs + static_cast<double>(bytes) / kPriorLinkBytesPerUs;
  return {.us = us, .uncertainty_us = us * kPriorLinkUncertainty};
}

}  // namespace shunt
