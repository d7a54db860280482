// Assigns offsets in the devices' arenas: tensors whose lifetimes do not overlap may share memory.
#pragma once

#include <map>

#include "plan/plan.h"

namespace shunt {

// Tracks who holds which bytes of an arena: the last to take them.
class Owners {
 public:
  // Takes bytes, and calls visit(owner) for each that held some of them, perhaps more than once.
  template <class Visit>
  void take(std::uint64_t begin, std::uint64_t end, std::uint32_t owner, const Visit& visit) {
    if (begin == end) return;
    auto place = held_.upper_bound(begin);
    if (place != held_.begin() && std::prev(place)->second.end > begin) --place;
    while (place != held_.end() && place->first < end) {
      const auto [first, held] = *place;
      visit(held.owner);
      place = held_.erase(place);
      if (first < begin) held_.emplace(first, Held{begin, held.owner});
      if (held.end > end) place = held_.emplace(end, held).first;
    }
    held_.emplace(begin, Held{end, owner});
  }

 private:
  struct Held {
    std::uint64_t end;
    std::uint32_t owner;
  };
  std::map<std::uint64_t, Held> held_;  // by the first byte
};

// Gives each value and input an offset that is a multiple of its device's alignment. The largest come first, each at
// the lowest place that no tensor alive at the same time covers. Returns the arena bytes of each device.
[[nodiscard]] std::vector<std::uint64_t> assign_offsets(std::vector<Residence>& residences,
                                                        std::span<const std::uint64_t> alignment_of_device);

[[nodiscard]] StorageKind storage_of(TensorKind kind);
// Returns whether it has an offset in its device's arena.
[[nodiscard]] bool in_arena(const Residence& residence);
// Returns whether some unit needs both.
[[nodiscard]] bool live_together(const Residence& a, const Residence& b);

}  // namespace shunt
