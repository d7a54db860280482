#include "base/system/memory_nodes.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/system/text_file.h"

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#endif

namespace shunt {
namespace {

using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

Bitmap make_bitmap() { return {hwloc_bitmap_alloc(), hwloc_bitmap_free}; }

// Returns whether the system says that it has several nodes with memory: "0-1", "0,2". Reading its whole topology would
// take milliseconds.
bool has_several_nodes() {
#if defined(__linux__)
  const Result<std::string> nodes = read_text_file("/sys/devices/system/node/has_memory");
  return nodes && nodes->find_first_of(",-") != std::string::npos;
#else
  return true;
#endif
}

// Returns whether whoever started the process, or the process itself, decided where its memory lies.
bool has_memory_policy(hwloc_topology* topology) {
  const Bitmap nodes = make_bitmap();
  hwloc_membind_policy_t policy = HWLOC_MEMBIND_DEFAULT;
  if (hwloc_get_membind(topology, nodes.get(), &policy, HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) != 0)
    return false;
  return policy != HWLOC_MEMBIND_DEFAULT && policy != HWLOC_MEMBIND_FIRSTTOUCH;
}

hwloc_topology* new_topology() {
  hwloc_topology* topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  // Nodes and processors are always there, but a node has the processors of the group around it.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  return topology;
}

#if defined(__linux__)
long move_pages(std::span<void*> pages, const int* to, std::span<int> status) {
  constexpr int kThisProcess = 0;
  return syscall(SYS_move_pages, kThisProcess, pages.size(), pages.data(), to, status.data(), MPOL_MF_MOVE);
}
#endif

}  // namespace

void MemoryNodes::CloseTopology::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

const MemoryNodes& MemoryNodes::of_this_machine() {
  static const MemoryNodes nodes = [] {
    if (!has_several_nodes()) return MemoryNodes();
    std::unique_ptr<hwloc_topology, CloseTopology> topology(new_topology());
    if (topology == nullptr) return MemoryNodes();
    // The system knows all that is needed; asking each processor for more would have this thread move to it.
    constexpr unsigned long kFlags = HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING |
                                     HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
    if (hwloc_topology_set_flags(topology.get(), kFlags) != 0 || hwloc_topology_load(topology.get()) != 0 ||
        has_memory_policy(topology.get()))
      return MemoryNodes();
    return MemoryNodes(std::move(topology));
  }();
  return nodes;
}

MemoryNodes MemoryNodes::described(const char* machine) {
  std::unique_ptr<hwloc_topology, CloseTopology> topology(new_topology());
  if (topology == nullptr || hwloc_topology_set_synthetic(topology.get(), machine) != 0 ||
      hwloc_topology_load(topology.get()) != 0)
    return {};
  return MemoryNodes(std::move(topology));
}

MemoryNodes::MemoryNodes(std::unique_ptr<hwloc_topology, CloseTopology> topology) : topology_(std::move(topology)) {
  const Bitmap left = make_bitmap();
  hwloc_bitmap_copy(left.get(), hwloc_topology_get_topology_cpuset(topology_.get()));
  // Where processors have memory of two kinds, the first is the usual one.
  for (hwloc_obj_t each = nullptr;
       (each = hwloc_get_next_obj_by_depth(topology_.get(), HWLOC_TYPE_DEPTH_NUMANODE, each)) != nullptr;) {
    if (each->attr->numanode.local_memory == 0 || !hwloc_bitmap_intersects(each->cpuset, left.get())) continue;
    Node node{.number = each->os_index, .processors = {}};
    for (int cpu = -1; (cpu = hwloc_bitmap_next(each->cpuset, cpu)) >= 0;)
      if (hwloc_bitmap_isset(left.get(), static_cast<unsigned>(cpu)))
        node.processors.push_back(static_cast<std::uint32_t>(cpu));
    hwloc_bitmap_andnot(left.get(), left.get(), each->cpuset);
    processors_ += static_cast<std::uint32_t>(node.processors.size());
    nodes_.push_back(std::move(node));
  }
  if (nodes_.size() < 2) *this = {};
}

bool MemoryNodes::is_here() const { return topology_ != nullptr && hwloc_topology_is_thissystem(topology_.get()) == 1; }

std::uint32_t MemoryNodes::node_of(std::uint32_t thread, std::uint32_t threads) const {
  auto processor = static_cast<std::uint32_t>(std::uint64_t{processors_} * thread / threads);
  std::uint32_t node = 0;
  for (; processor >= nodes_[node].processors.size(); ++node)
    processor -= static_cast<std::uint32_t>(nodes_[node].processors.size());
  return node;
}

MemoryNodes::Stretch MemoryNodes::stretch_at(std::uint64_t at, std::uint64_t bytes, std::uint32_t threads) const {
  auto thread = static_cast<std::uint32_t>(at * threads / bytes);
  const std::uint32_t node = node_of(thread, threads);
  while (thread < threads && node_of(thread, threads) == node) ++thread;
  return {.node = node, .end = (bytes * thread + threads - 1) / threads};
}

MemoryNodes::Preference::Preference(const MemoryNodes& nodes, std::uint32_t node) : nodes_(nodes) {
  const Bitmap set = make_bitmap();
  hwloc_bitmap_only(set.get(), nodes_.nodes_[node].number);
  // Not strict: a full node sends its pages elsewhere.
  static_cast<void>(hwloc_set_membind(nodes_.topology_.get(), set.get(), HWLOC_MEMBIND_BIND,
                                      HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET));
}

// Nodes are placed only where the process had no policy of its own.
MemoryNodes::Preference::~Preference() {
  static_cast<void>(hwloc_set_membind(nodes_.topology_.get(),
                                      hwloc_topology_get_complete_nodeset(nodes_.topology_.get()),
                                      HWLOC_MEMBIND_DEFAULT, HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET));
}

// hwloc would move pages by a policy for their addresses, which makes a mapping of its own of each piece of a file.
void MemoryNodes::move([[maybe_unused]] std::span<const std::byte> bytes, [[maybe_unused]] std::uint32_t node) const {
#if defined(__linux__)
  if (!is_here() || bytes.empty()) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(bytes.data()) % page;
  std::vector<void*> pages;
  for (std::size_t at = into_page == 0 ? 0 : page - into_page; at < bytes.size(); at += page)
    pages.push_back(const_cast<std::byte*>(bytes.data()) + at);
  // Asking is cheap; moving stops all processors for a moment.
  std::vector<int> now(pages.size());
  if (move_pages(pages, nullptr, now) != 0) return;
  const auto number = static_cast<int>(nodes_[node].number);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < pages.size(); ++i)
    if (now[i] >= 0 && now[i] != number) pages[wrong++] = pages[i];
  if (wrong == 0) return;
  const std::vector<int> to(wrong, number);
  static_cast<void>(move_pages(std::span(pages).first(wrong), to.data(), now));
#endif
}

void MemoryNodes::interleave(std::span<std::byte> bytes) const {
  if (!is_here() || bytes.empty()) return;
  const Bitmap set = make_bitmap();
  for (const Node& node : nodes_) hwloc_bitmap_set(set.get(), node.number);
  static_cast<void>(hwloc_set_area_membind(topology_.get(), bytes.data(), bytes.size(), set.get(),
                                           HWLOC_MEMBIND_INTERLEAVE, HWLOC_MEMBIND_BYNODESET));
}

}  // namespace shunt
