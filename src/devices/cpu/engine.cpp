#include "devices/cpu/engine.h"

#include <utility>

namespace shunt::cpu {

void Engine::enqueue(std::function<void(ThreadPool&)> job) {
  const std::scoped_lock lock(mutex_);
  queue_.push_back(std::move(job));
}

bool Engine::advance() {
  std::function<void(ThreadPool&)> job;
  {
    const std::scoped_lock lock(mutex_);
    if (busy_ || queue_.empty()) return false;
    busy_ = true;
    job = std::move(queue_.front());
    queue_.pop_front();
  }
  job(pool_);
  const std::scoped_lock lock(mutex_);
  busy_ = false;
  return true;
}

}  // namespace shunt::cpu
