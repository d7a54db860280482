// The processor cores as one compute resource: a thread pool and the queue of submissions that wait for it.
// Shared by the devices cpu:simd and cpu:scalar. All calls are safe from many threads.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "base/system/thread_pool.h"

namespace shunt::cpu {

class Engine {
 public:
  Engine(std::uint32_t threads, std::span<const std::uint32_t> pin_to_cpus) : pool_(threads, pin_to_cpus) {}

  // `job` runs on the thread that calls advance(), with the pool to itself.
  void enqueue(std::function<void(ThreadPool&)> job);

  // Runs all that is queued, also by other threads. False where there is nothing to do, or another thread is at it
  // already: it will then run everything that was queued before this call.
  bool advance();

  [[nodiscard]] std::uint32_t threads() const { return pool_.threads(); }
  [[nodiscard]] const Status& status() const { return pool_.status(); }

 private:
  ThreadPool pool_;
  std::mutex mutex_;
  std::deque<std::function<void(ThreadPool&)>> queue_;
  bool busy_ = false;
};

}  // namespace shunt::cpu
