// A pool of the calling thread alone: WebAssembly has no other thread here.
#include "base/system/thread_pool.h"

namespace shunt {

std::uint32_t usable_cores() { return 1; }

ThreadPool::ThreadPool(std::uint32_t threads, std::span<const std::uint32_t> pin_to_cpus) {
  if (threads > 1 || !pin_to_cpus.empty())
    status_ = fail(Code::unsupported, "WebAssembly has one thread here, and no processor to pin it to");
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::keep_on(std::uint32_t, std::span<const std::uint32_t>) {}

void ThreadPool::fetch(std::span<const Fetched>) {}

void ThreadPool::run(Job& job) {
  while (const std::uint32_t shares = job.next_step())
    for (std::uint32_t share = 0; share < shares; ++share) job.run(share, 0);
}

}  // namespace shunt
