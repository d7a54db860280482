// Brings weights that devices read from their source's own memory into memory before they are used: threads fetch them,
// in the order in which they were added, while the caller goes on.
//
// Where there are several memory nodes, bytes come to the node of the thread that reads them, or move there if they
// were in memory already; those that any thread may read come to all nodes in turn.
//
// One thread at a time, but left() is safe from many. The source and the nodes must outlive the object.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <vector>

#include "base/system/memory_nodes.h"
#include "base/system/task_queue.h"
#include "shunt/weights.h"

namespace shunt {

class ReadAhead {
 public:
  explicit ReadAhead(WeightSource& source, const MemoryNodes& nodes = MemoryNodes::of_this_machine());
  // Waits for pieces that are being fetched; the others never are.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Adds bytes of a tensor, which are used after those added before. `readers` threads of a pool will divide them
  // evenly, in their order; 0: any thread may read any of them. REQUIRES: they lie inside the tensor.
  void add(std::size_t index, std::uint64_t offset, std::uint64_t bytes, std::uint32_t readers = 0);
  // Begins to fetch what was added since the last call, the first `most_bytes` of it: more than memory holds would
  // push out what is used first.
  void start(std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max());
  // Returns when all that was started is in memory. The caller helps.
  void wait();
  // Forgets what was added since the last start().
  void forget() { added_.clear(); }
  // Returns how many bytes were started and are not in memory yet.
  [[nodiscard]] std::uint64_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  // Some bytes of a tensor.
  struct Piece {
    std::size_t index = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t node = 0;
  };
  struct Run;

  void fetch(const Piece& piece);

  WeightSource& source_;
  const MemoryNodes& nodes_;
  std::vector<Piece> added_;
  std::atomic<std::uint64_t> left_{0};
  std::list<Run> runs_;
  std::optional<TaskQueue> threads_;  // end before the runs
};

}  // namespace shunt
