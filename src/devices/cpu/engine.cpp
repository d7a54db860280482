#include "devices/cpu/engine.h"

#include <utility>

namespace shunt::cpu {

void spread_over(const MemoryNodes& nodes, ThreadPool& pool) {
  if (nodes.count() == 0) return;
  for (std::uint32_t thread = 1; thread < pool.threads(); ++thread)
    pool.keep_on(thread, nodes.processors(nodes.node_of(thread, pool.threads())));
}

void Engine::enqueue(std::function<void(ThreadPool&)> job) {
  const std::scoped_lock lock(mutex_);
  queue_.push_back(std::move(job));
}

bool Engine::advance() {
  std::unique_lock lock(mutex_);
  if (busy_ || queue_.empty()) return false;
  busy_ = true;
  // A thread that saw busy_ may sleep until its job is done, so the queue must be emptied.
  while (!queue_.empty()) {
    const std::function<void(ThreadPool&)> job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job(pool_);
    lock.lock();
  }
  busy_ = false;
  return true;
}

void Engine::fetch(std::span<const ThreadPool::Fetched> of_threads) {
  const std::scoped_lock lock(mutex_);
  if (!busy_ && queue_.empty()) pool_.fetch(of_threads);
}

}  // namespace shunt::cpu
