// No nodes: WebAssembly has one memory.
#include "base/system/memory_nodes.h"

namespace shunt {

const MemoryNodes& MemoryNodes::of_this_machine() {
  static const MemoryNodes nodes;
  return nodes;
}

void MemoryNodes::CloseTopology::operator()(hwloc_topology*) const {}

std::uint32_t MemoryNodes::node_of(std::uint32_t, std::uint32_t) const { return 0; }
MemoryNodes::Stretch MemoryNodes::stretch_at(std::uint64_t, std::uint64_t bytes, std::uint32_t) const {
  return {.node = 0, .end = bytes};
}

MemoryNodes::Preference::Preference(const MemoryNodes& nodes, std::uint32_t) : nodes_(nodes) {}
MemoryNodes::Preference::~Preference() = default;

void MemoryNodes::move(std::span<const std::byte>, std::uint32_t) const {}
void MemoryNodes::interleave(std::span<std::byte>) const {}

}  // namespace shunt
