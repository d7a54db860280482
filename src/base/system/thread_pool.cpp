#include "base/system/thread_pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/system/cgroup.h"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shunt {
namespace {

// Tens of microseconds: longer than the gap between two ops, shorter than a scheduler's time slice.
constexpr int kSpins = 1500;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The time that threads wait within a job before they sleep. Waking a dozen threads takes longer than most ops: once
// all sleep because one was late, only that one is awake for the next op, and the others sleep again before it arrives.
constexpr std::chrono::milliseconds kPatienceWithinJob{5};

// The spins between yields of the processor meanwhile: pauses alone yield it only to the thread that shares the core.
constexpr int kSpinsBetweenYields = 200;

bool changes_within(int spins, const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < spins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return true;
    pause();
  }
  return false;
}

// Waits until `value` is no longer `old`; the next job may come soon or never.
void wait_for_job(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  if (!changes_within(kSpins, value, old)) value.wait(old, std::memory_order_acquire);
}

// Does the same, for what another thread is about to do.
void wait_within_job(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  if (changes_within(kSpins, value, old)) return;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < kPatienceWithinJob) {
    std::this_thread::yield();
    if (changes_within(kSpinsBetweenYields, value, old)) return;
  }
  value.wait(old, std::memory_order_acquire);
}

// Returns the processors that this process may use; empty if the system does not tell.
std::vector<std::uint32_t> allowed_processors() {
  std::vector<std::uint32_t> allowed;
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) allowed.push_back(cpu);
#endif
  return allowed;
}

Status pin(std::thread& thread, std::uint32_t cpu) {
  // The system would also accept a processor outside the process's affinity mask.
  const std::vector<std::uint32_t> allowed = allowed_processors();
  if (!allowed.empty() && std::ranges::find(allowed, cpu) == allowed.end())
    return fail(Code::invalid, fmt::format("a thread cannot be pinned to processor {}: this process may use only {}",
                                           cpu, fmt::join(allowed, ", ")));
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  const int error = pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
  if (error == 0) return {};
  return fail(Code::internal, fmt::format("a thread cannot be pinned to processor {}: {}", cpu,
                                          std::generic_category().message(error)));
#else
  static_cast<void>(thread);
  return fail(Code::unsupported, "threads cannot be pinned to processors on this system");
#endif
}

}  // namespace

std::uint32_t usable_cores() {
  const auto allowed = static_cast<std::uint32_t>(allowed_processors().size());
  const std::uint32_t cores = allowed != 0 ? allowed : std::max(std::thread::hardware_concurrency(), 1U);
  return std::min(cores, cgroup_cores().value_or(cores));
}

ThreadPool::ThreadPool(std::uint32_t threads, std::span<const std::uint32_t> pin_to_cpus) {
  try {
    start(std::max(threads, 1U) - 1, pin_to_cpus);
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::start(std::uint32_t workers, std::span<const std::uint32_t> pin_to_cpus) {
  workers_.reserve(workers);
  for (std::uint32_t thread = 1; thread <= workers; ++thread) {
    try {
      workers_.emplace_back([this, thread] { work(thread); });
    } catch (const std::system_error& refused) {
      status_ = fail(Code::out_of_memory,
                     fmt::format("the system gives this process only {} of {} threads ({}); use fewer (--threads)",
                                 thread, workers + 1, refused.code().message()));
      return;
    }
    if (thread < pin_to_cpus.size() && status_) status_ = pin(workers_.back(), pin_to_cpus[thread]);
  }
}

void ThreadPool::stop() {
  stop_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work(std::uint32_t thread) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_for_job(job_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    call(function_, context_, thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadPool::call(Function function, const void* context, std::uint32_t thread) noexcept {
  try {
    function(context, thread);
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!thrown_) thrown_ = std::current_exception();
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
  call(function, context, 0);
  for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire))
    wait_within_job(running_, left);
  // No other thread is left that could set it.
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
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
  wait_within_job(passed_, passed);
}

}  // namespace shunt
