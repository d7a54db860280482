#include "plan/storage.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shunt {

StorageKind storage_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::weight:
      return StorageKind::weight;
    case TensorKind::input:
      return StorageKind::input;
    case TensorKind::state:
      return StorageKind::state;
    case TensorKind::value:
      break;
  }
  return StorageKind::value;
}

bool in_arena(const Residence& residence) {
  return residence.kind == StorageKind::value || residence.kind == StorageKind::input;
}

bool live_together(const Residence& a, const Residence& b) { return a.first <= b.last && b.first <= a.last; }

namespace {

// Finds the residences alive together with another: by the units at which they live, except for the few that live long.
class Lives {
 public:
  explicit Lives(std::span<const Residence> residences) : residences_(residences), asked_(residences.size(), kNone) {
    std::uint32_t end = 0;
    for (const Residence& residence : residences) end = std::max(end, residence.last);
    at_.resize(std::size_t{end} + 1);
  }

  void add(std::uint32_t index) {
    all_.push_back(index);
    const Residence& residence = residences_[index];
    if (is_long(residence)) return long_.push_back(index);
    for (std::uint32_t unit = residence.first; unit <= residence.last; ++unit) at_[unit].push_back(index);
  }

  // Returns those that were added, on the same device.
  [[nodiscard]] std::vector<const Residence*> with(std::uint32_t index) {
    std::vector<const Residence*> found;
    const Residence& residence = residences_[index];
    const auto look_at = [&](const std::vector<std::uint32_t>& indices) {
      for (const std::uint32_t other : indices) {
        if (std::exchange(asked_[other], index) == index) continue;
        if (residences_[other].device == residence.device && live_together(residences_[other], residence))
          found.push_back(&residences_[other]);
      }
    };
    look_at(is_long(residence) ? all_ : long_);
    for (std::uint32_t unit = residence.first; !is_long(residence) && unit <= residence.last; ++unit)
      look_at(at_[unit]);
    return found;
  }

 private:
  [[nodiscard]] static bool is_long(const Residence& residence) { return residence.last - residence.first > 64; }

  std::span<const Residence> residences_;
  std::vector<std::uint32_t> asked_;  // who last asked for each
  std::vector<std::uint32_t> all_;
  std::vector<std::uint32_t> long_;
  std::vector<std::vector<std::uint32_t>> at_;  // short-lived ones, by unit
};

}  // namespace

std::vector<std::uint64_t> assign_offsets(std::vector<Residence>& residences,
                                          std::span<const std::uint64_t> alignment_of_device) {
  std::vector<std::uint64_t> arena_bytes(alignment_of_device.size(), 0);
  std::vector<std::uint32_t> order(residences.size());
  std::iota(order.begin(), order.end(), 0U);
  std::erase_if(order, [&](std::uint32_t index) { return !in_arena(residences[index]); });
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::uint32_t index) { return residences[index].bytes; });

  Lives placed(residences);
  for (const std::uint32_t index : order) {
    Residence& residence = residences[index];
    const std::uint64_t alignment = alignment_of_device[residence.device];
    std::vector<const Residence*> neighbours = placed.with(index);
    std::ranges::sort(neighbours, {}, &Residence::offset);
    std::uint64_t offset = 0;
    for (const Residence* neighbour : neighbours) {
      if (offset + residence.bytes <= neighbour->offset) break;
      const std::uint64_t end = neighbour->offset + neighbour->bytes;
      offset = std::max(offset, (end + alignment - 1) / alignment * alignment);
    }
    residence.offset = offset;
    arena_bytes[residence.device] = std::max(arena_bytes[residence.device], offset + residence.bytes);
    placed.add(index);
  }
  return arena_bytes;
}

}  // namespace shunt
