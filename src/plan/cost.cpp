#include "plan/cost.h"

#include <algorithm>

namespace shunt {
namespace {

bool is_host(const DeviceInfo& device) { return device.memory_pool == kHostPool; }

Prediction predict_link(std::uint64_t bytes, const DeviceInfo& device) {
  if (is_host(device)) return {};
  const double us = device.prior.link_us + static_cast<double>(bytes) / device.prior.link_bytes_per_s * 1e6;
  return {.us = us, .uncertainty_us = us * device.prior.uncertainty};
}

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
  const bool is_straight = from.links_to_peers && to.links_to_peers && !is_host(to);
  const Prediction up = is_straight ? Prediction{} : predict_link(bytes, from);
  const Prediction down = predict_link(bytes, to);
  return {.us = up.us + down.us, .uncertainty_us = up.uncertainty_us + down.uncertainty_us};
}

}  // namespace shunt
