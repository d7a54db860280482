// The processor cores as one compute resource: a thread pool and the queue of submissions waiting for it. Shared by the
// devices cpu:simd and cpu:scalar. All calls are safe from many threads.
//
// Unless they are pinned, threads are spread over the memory nodes, as the rows of weights are (run/read_ahead.h).
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "base/system/memory_nodes.h"
#include "base/system/thread_pool.h"

namespace shunt::cpu {

// Keeps each of the pool's own threads on the processors of one node; with no nodes, does nothing.
void spread_over(const MemoryNodes& nodes, ThreadPool& pool);

class Engine {
 public:
  Engine(std::uint32_t threads, std::span<const std::uint32_t> pin_to_cpus) : pool_(threads, pin_to_cpus) {
    if (pin_to_cpus.empty()) spread_over(MemoryNodes::of_this_machine(), pool_);
  }

  // `job` runs on the thread that calls advance(), with exclusive use of the pool.
  void enqueue(std::function<void(ThreadPool&)> job);

  // Runs everything that is queued, including jobs of other threads. Returns false if there is nothing to do, or if
  // another thread is already running the queue: it will then run all that was queued before this call.
  bool advance();

  // Has idle threads fetch what they will read (ThreadPool::fetch()). Does nothing while there are jobs.
  void fetch(std::span<const ThreadPool::Fetched> of_threads);

  [[nodiscard]] std::uint32_t threads() const { return pool_.threads(); }
  [[nodiscard]] const Status& status() const { return pool_.status(); }

 private:
  ThreadPool pool_;
  std::mutex mutex_;
  std::deque<std::function<void(ThreadPool&)>> queue_;
  bool busy_ = false;
};

}  // namespace shunt::cpu
