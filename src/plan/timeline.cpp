#include "plan/timeline.h"

#include <algorithm>
#include <string_view>

namespace shunt {
namespace {

std::uint32_t number_of(std::vector<std::string_view>& known, std::string_view id) {
  const auto place = std::ranges::find(known, id);
  if (place != known.end()) return static_cast<std::uint32_t>(place - known.begin());
  known.push_back(id);
  return static_cast<std::uint32_t>(known.size() - 1);
}

}  // namespace

std::vector<Lane> lanes_of(std::span<Device* const> devices) {
  std::vector<Lane> lanes;
  std::vector<std::string_view> pools;
  std::vector<std::string_view> resources;
  for (const Device* device : devices) {
    const DeviceInfo& info = device->info();
    const bool is_host = info.memory_pool == kHostPool;
    lanes.push_back({.pool = number_of(pools, info.memory_pool),
                     .resource = number_of(resources, info.compute_resource),
                     .launch_us = info.prior.launch_us,
                     .link_us = is_host ? 0 : info.prior.link_us,
                     .link_us_per_byte = is_host ? 0 : 1e6 / info.prior.link_bytes_per_s,
                     .links_to_peers = info.links_to_peers && !is_host});
  }
  return lanes;
}

void Timeline::reset() {
  resource_free_.assign(lanes_.size(), 0);
  to_free_.assign(lanes_.size(), 0);
  from_free_.assign(lanes_.size(), 0);
  end_us_ = 0;
}

Span Timeline::compute(std::uint32_t device, double ready_us, double us) {
  const Lane& lane = lanes_[device];
  double& free = resource_free_[lane.resource];
  const double start = std::max(ready_us, free);
  free = start + lane.launch_us + us;
  end_us_ = std::max(end_us_, free);
  return {start, free};
}

Span Timeline::transfer(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, double ready_us) {
  Span span{ready_us, ready_us};
  const auto along = [&](const Lane& lane, double& link_free) {
    const double us = lane.link_us + lane.link_us_per_byte * static_cast<double>(bytes);
    if (us <= 0) return;
    const double start = std::max(span.end_us, link_free);
    if (span.start_us == span.end_us) span.start_us = start;
    span.end_us = link_free = start + us;
  };
  if (!lanes_[from].links_to_peers || !lanes_[to].links_to_peers) along(lanes_[from], from_free_[from]);
  along(lanes_[to], to_free_[to]);
  end_us_ = std::max(end_us_, span.end_us);
  return span;
}

}  // namespace shunt
