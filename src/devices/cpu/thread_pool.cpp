#include "devices/cpu/thread_pool.h"

#include <algorithm>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shunt::cpu {
namespace {

// Some tens of microseconds: longer than the gap between two ops, shorter than a scheduler's time slice.
constexpr int kSpins = 1500;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` is no longer `old`.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

void pin(std::thread& thread, std::uint32_t cpu) {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // A processor that this process may not use leaves the thread where it is.
  pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
#else
  static_cast<void>(thread);
  static_cast<void>(cpu);
#endif
}

}  // namespace

std::uint32_t usable_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(std::max(CPU_COUNT(&set), 1));
#endif
  return std::max(std::thread::hardware_concurrency(), 1U);
}

ThreadPool::ThreadPool(std::uint32_t threads, std::span<const std::uint32_t> pin_to_cpus) {
  const std::uint32_t workers = std::max(threads, 1U) - 1;
  workers_.reserve(workers);
  for (std::uint32_t thread = 1; thread <= workers; ++thread) {
    workers_.emplace_back([this, thread] { work(thread); });
    if (thread < pin_to_cpus.size()) pin(workers_.back(), pin_to_cpus[thread]);
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work(std::uint32_t thread) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_for_change(job_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    function_(context_, thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadPool::run_erased(Function function, const void* context) {
  if (workers_.empty()) {
    function(context, 0);
    return;
  }
  function_ = function;
  context_ = context;
  running_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  function(context, 0);
  for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire))
    wait_for_change(running_, left);
}

void ThreadPool::barrier() {
  if (workers_.empty()) return;
  const std::uint32_t passed = passed_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads()) {
    arrived_.store(0, std::memory_order_relaxed);
    passed_.store(passed + 1, std::memory_order_release);
    passed_.notify_all();
    return;
  }
  wait_for_change(passed_, passed);
}

}  // namespace shunt::cpu
