#include "plan/storage.h"

#include <algorithm>
#include <numeric>

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

bool share_memory(const Residence& a, const Residence& b) {
  return in_arena(a) && in_arena(b) && a.device == b.device && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

bool live_together(const Residence& a, const Residence& b) { return a.first <= b.last && b.first <= a.last; }

std::vector<std::uint64_t> assign_offsets(std::vector<Residence>& residences,
                                          std::span<const std::uint64_t> alignment_of_device) {
  std::vector<std::uint64_t> arena_bytes(alignment_of_device.size(), 0);
  std::vector<std::size_t> order(residences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t index) { return !in_arena(residences[index]); });
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t index) { return residences[index].bytes; });

  std::vector<std::size_t> placed;
  for (const std::size_t index : order) {
    Residence& residence = residences[index];
    const std::uint64_t alignment = alignment_of_device[residence.device];
    std::vector<const Residence*> neighbours;
    for (const std::size_t other : placed)
      if (residences[other].device == residence.device && live_together(residences[other], residence))
        neighbours.push_back(&residences[other]);
    std::ranges::sort(neighbours, {}, &Residence::offset);
    std::uint64_t offset = 0;
    for (const Residence* neighbour : neighbours) {
      if (offset + residence.bytes <= neighbour->offset) break;
      const std::uint64_t end = neighbour->offset + neighbour->bytes;
      offset = std::max(offset, (end + alignment - 1) / alignment * alignment);
    }
    residence.offset = offset;
    arena_bytes[residence.device] = std::max(arena_bytes[residence.device], offset + residence.bytes);
    placed.push_back(index);
  }
  return arena_bytes;
}

}  // namespace shunt
