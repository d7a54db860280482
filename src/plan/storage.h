// Offsets in the devices' arenas: tensors whose lives do not overlap may share memory.
#pragma once

#include "plan/plan.h"

namespace shunt {

// Gives each value and input an offset that is a multiple of its device's alignment, largest first, at the
// lowest place that no tensor alive at the same time covers. Returns the arena bytes of each device.
[[nodiscard]] std::vector<std::uint64_t> assign_offsets(std::vector<Residence>& residences,
                                                        std::span<const std::uint64_t> alignment_of_device);

[[nodiscard]] StorageKind storage_of(TensorKind kind);
// Whether it has an offset in its device's arena.
[[nodiscard]] bool in_arena(const Residence& residence);
// Whether two copies lie in the same arena, in overlapping bytes.
[[nodiscard]] bool share_memory(const Residence& a, const Residence& b);
// Whether some unit needs both.
[[nodiscard]] bool live_together(const Residence& a, const Residence& b);

}  // namespace shunt
