// The machine's memory nodes (NUMA): which threads run near which memory, and on which node pages lie.
//
// A node is memory whose own processors this process may use. If there are not several, or if the process was given a
// memory policy (as by numactl), count() is 0 and nothing is placed. Nothing fails: what the system refuses costs only
// speed. Constant once made; safe from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct hwloc_topology;

namespace shunt {

class MemoryNodes {
 public:
  // Looks for them on the first call, which takes microseconds unless there are several.
  [[nodiscard]] static const MemoryNodes& of_this_machine();
  // Those of a machine in hwloc's words, such as "numa:2 core:4 pu:1"; nothing is placed there. No nodes if hwloc does
  // not understand them.
  [[nodiscard]] static MemoryNodes described(const char* machine);
  // No nodes.
  MemoryNodes() = default;

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] std::span<const std::uint32_t> processors(std::uint32_t node) const { return nodes_[node].processors; }

  // Returns the node of a thread: neighbours are together, and each node has threads in proportion to its processors.
  // REQUIRES: thread < threads; count() != 0.
  [[nodiscard]] std::uint32_t node_of(std::uint32_t thread, std::uint32_t threads) const;

  // Bytes that belong on one node, up to `end`.
  struct Stretch {
    std::uint32_t node = 0;
    std::uint64_t end = 0;
  };
  // Returns the stretch with byte `at` of `bytes` that the threads divide evenly, in their order. REQUIRES: at < bytes;
  // threads != 0; count() != 0.
  [[nodiscard]] Stretch stretch_at(std::uint64_t at, std::uint64_t bytes, std::uint32_t threads) const;

  // While it lives, pages that the calling thread brings in come to a node as long as that has room.
  class Preference {
   public:
    // REQUIRES: node < nodes.count(), which outlives this.
    Preference(const MemoryNodes& nodes, std::uint32_t node);
    ~Preference();
    Preference(const Preference&) = delete;
    Preference& operator=(const Preference&) = delete;

   private:
    const MemoryNodes& nodes_;
  };
  // Moves pages that begin in the span to a node, except those that other processes have mapped too. REQUIRES: node <
  // count().
  void move(std::span<const std::byte> bytes, std::uint32_t node) const;
  // Has pages that are not in memory yet come to all nodes in turn. REQUIRES: the span begins with a page.
  void interleave(std::span<std::byte> bytes) const;

 private:
  struct CloseTopology {
    void operator()(hwloc_topology* topology) const;
  };
  struct Node {
    std::uint32_t number = 0;  // as the system counts
    std::vector<std::uint32_t> processors;
  };

  explicit MemoryNodes(std::unique_ptr<hwloc_topology, CloseTopology> topology);
  // Whether the topology is this machine's.
  [[nodiscard]] bool is_here() const;

  std::unique_ptr<hwloc_topology, CloseTopology> topology_;
  std::vector<Node> nodes_;
  std::uint32_t processors_ = 0;  // of all nodes
};

}  // namespace shunt
