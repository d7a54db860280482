#include "plan/timeline.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace shunt {
namespace {

// An idle device stays ready for work for this long: CPU threads spin for about as long.
constexpr double kAwakeUs = 50;

std::uint32_t number_of(std::vector<std::string_view>& known, std::string_view id) {
  const auto place = std::ranges::find(known, id);
  if (place != known.end()) return static_cast<std::uint32_t>(place - known.begin());
  known.push_back(id);
  return static_cast<std::uint32_t>(known.size() - 1);
}

// Copies of state in pinned memory are priced alike in both directions.
const LinkRates& link_to_host(const Lane& from, Copied what) {
  return what == Copied::state && from.pins_memory ? from.weights_from_host : from.to_host;
}

const LinkRates& link_from_host(const Lane& to, Copied what) {
  return what == Copied::value ? to.from_host : to.weights_from_host;
}

}  // namespace

std::vector<Lane> lanes_of(std::span<Device* const> devices, std::span<const DeviceCost> costs) {
  std::vector<Lane> lanes;
  std::vector<std::string_view> pools;
  std::vector<std::string_view> memories;
  std::vector<std::string_view> resources;
  for (std::size_t device = 0; device < devices.size(); ++device) {
    const DeviceInfo& info = devices[device]->info();
    lanes.push_back({.pool = number_of(pools, info.memory_pool),
                     .memory = number_of(memories, memory_of(info)),
                     .resource = number_of(resources, info.compute_resource),
                     .launch_us = costs[device].launch_us(),
                     .wake_us = costs[device].wake_us(),
                     .to_host = costs[device].from_device(),
                     .from_host = costs[device].to_device(),
                     .weights_from_host = costs[device].weights_to_device(),
                     .from_peers = costs[device].from_peers(),
                     .reads_beside_weights = costs[device].reads_beside_weights(),
                     .weights_beside_reads = costs[device].weights_beside_reads(),
                     .pins_memory = costs[device].pins_memory(),
                     .links_to_peers = info.links_to_peers && info.memory_pool != kHostPool,
                     .one_way_at_a_time = costs[device].one_way_at_a_time()});
  }
  return lanes;
}

std::size_t pools_of(std::span<const Lane> lanes) {
  std::size_t pools = 0;
  for (const Lane& lane : lanes) pools = std::max(pools, std::size_t{lane.pool} + 1);
  return pools;
}

std::size_t memories_of(std::span<const Lane> lanes) {
  std::size_t memories = 0;
  for (const Lane& lane : lanes) memories = std::max(memories, std::size_t{lane.memory} + 1);
  return memories;
}

std::string_view memory_of(const DeviceInfo& device) {
  return device.memory_resource == kHostPool ? device.memory_pool : device.memory_resource;
}

void share_least_budgets(std::span<Device* const> devices, std::span<std::uint64_t> budget_bytes) {
  std::map<std::string_view, std::uint64_t> least;
  for (std::size_t device = 0; device < devices.size(); ++device) {
    const auto [its, is_new] = least.try_emplace(memory_of(devices[device]->info()), budget_bytes[device]);
    its->second = std::min(its->second, budget_bytes[device]);
  }
  for (std::size_t device = 0; device < devices.size(); ++device)
    budget_bytes[device] = least.at(memory_of(devices[device]->info()));
}

bool goes_through_host(const Lane& from, const Lane& to) { return !from.links_to_peers || !to.links_to_peers; }

Copied priced_as(const Lane& from, const Lane& to, Copied what) {
  const bool is_from_host = from.to_host.bytes_per_s == 0;
  const bool is_to_host = to.to_host.bytes_per_s == 0;
  return is_from_host || (what == Copied::state && is_to_host) ? what : Copied::value;
}

Prediction predict_copy(const Lane& from, const Lane& to, std::uint64_t bytes, Copied what) {
  if (from.pool == to.pool) return {};
  if (!goes_through_host(from, to)) {
    const double us = to.from_peers.copy_us(bytes);
    return {.us = us, .uncertainty_us = us * to.from_peers.spread};
  }
  const Copied priced = priced_as(from, to, what);
  const LinkRates& link = link_from_host(to, priced);
  const LinkRates& link_down = link_to_host(from, priced);
  const double down = link_down.copy_us(bytes);
  const double up = link.copy_us(bytes);
  return {.us = down + up, .uncertainty_us = down * link_down.spread + up * link.spread};
}

bool is_brief(const Lane& from, const Lane& to, std::uint64_t bytes) {
  return predict_copy(from, to, bytes).us <= 2 * to.launch_us;
}

std::uint32_t CopyWindow::add(std::uint32_t user, std::uint64_t bytes, std::uint64_t window_bytes) {
  while (!weights_.empty() && weights_.front().user != user && bytes_ + bytes > window_bytes) {
    ended_ = weights_.front().user;
    bytes_ -= weights_.front().bytes;
    weights_.pop_front();
  }
  weights_.push_back({user, bytes});
  bytes_ += bytes;
  return ended_;
}

void Timeline::reset() {
  resource_free_.assign(lanes_.size(), 0);
  to_free_.assign(lanes_.size(), 0);
  weights_free_.assign(lanes_.size(), 0);
  from_free_.assign(lanes_.size(), 0);
  end_us_ = 0;
}

Span Timeline::compute(std::uint32_t device, double ready_us, double us) {
  const Lane& lane = lanes_[device];
  double& free = resource_free_[lane.resource];
  const double start = std::max(ready_us, free);
  free = start + lane.launch_us + (start - free > kAwakeUs ? lane.wake_us : 0);
  free += lane.to_host.bytes_per_s == 0 ? beside_weights(free, us) : us;
  end_us_ = std::max(end_us_, free);
  return {start, free};
}

double Timeline::beside_weights(double start, double us) {
  double slower = 0;
  for (std::size_t device = 0; device < lanes_.size(); ++device) {
    const Lane& lane = lanes_[device];
    // Lasts until the last of them has arrived, or this has ended.
    const double arriving = std::max(weights_free_[device] - start, 0.0) / lane.weights_beside_reads;
    const double meanwhile = std::min(arriving, us / lane.reads_beside_weights);
    slower += meanwhile * (1 - lane.reads_beside_weights);
    weights_free_[device] += meanwhile * (1 - lane.weights_beside_reads);
  }
  return us + slower;
}

Span Timeline::copy(const LinkRates& link, std::uint64_t bytes, double ready_us, double& link_free) {
  const double us = link.copy_us(bytes);
  if (us <= 0) return {ready_us, ready_us};
  const double start = std::max(ready_us, link_free);
  link_free = start + us;
  end_us_ = std::max(end_us_, link_free);
  return {start, link_free};
}

Span Timeline::to_host(std::uint32_t from, std::uint64_t bytes, double ready_us, Copied what) {
  return copy(link_to_host(lanes_[from], what), bytes, ready_us, from_free_[from]);
}

Span Timeline::from_host(std::uint32_t to, std::uint64_t bytes, double ready_us, Copied what) {
  const Lane& lane = lanes_[to];
  double& free = what != Copied::value ? weights_free_[to] : lane.one_way_at_a_time ? from_free_[to] : to_free_[to];
  return copy(link_from_host(lane, what), bytes, ready_us, free);
}

Span Timeline::from_peer(std::uint32_t to, std::uint64_t bytes, double ready_us) {
  return copy(lanes_[to].from_peers, bytes, ready_us, to_free_[to]);
}

Span Timeline::transfer(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, double ready_us) {
  if (!goes_through_host(lanes_[from], lanes_[to])) return from_peer(to, bytes, ready_us);
  const Span down = to_host(from, bytes, ready_us);
  const Span up = from_host(to, bytes, down.end_us);
  return {down.start_us == down.end_us ? up.start_us : down.start_us, up.end_us};
}

}  // namespace shunt
