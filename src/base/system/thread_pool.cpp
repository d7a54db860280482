#include "base/system/thread_pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/system/cgroup.h"
#include "base/system/processor_times.h"

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

// A microsecond: what a thread that has no share left waits before it takes others'. Threads that are as fast as usual
// end by then, and their shares, like what those read, stay in their own caches.
constexpr int kSpinsBeforeHelping = 30;

// The time that threads wait within a job before they sleep. Waking a dozen threads takes longer than most ops: once
// all sleep because one was late, only that one is awake for the next op, and the others sleep again before it arrives.
constexpr std::chrono::milliseconds kPatienceWithinJob{5};

// The spins between yields of the processor meanwhile: pauses alone yield it only to the thread that shares the core.
constexpr int kSpinsBetweenYields = 200;

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kBytesBetweenLooks = 1024;
constexpr int kSecondLevel = 2;  // the cache, as __builtin_prefetch() counts

bool changes_within(int spins, const std::atomic<std::uint64_t>& value, std::uint64_t old) {
  for (int spin = 0; spin < spins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return true;
    pause();
  }
  return false;
}

// Waits until `value` is no longer `old`; the next job may come soon or never.
void wait_for_job(const std::atomic<std::uint64_t>& value, std::uint64_t old) {
  if (!changes_within(kSpins, value, old)) value.wait(old, std::memory_order_acquire);
}

// Does the same, for what another thread is about to do.
void wait_within_job(const std::atomic<std::uint64_t>& value, std::uint64_t old) {
  if (changes_within(kSpins, value, old)) return;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < kPatienceWithinJob) {
    std::this_thread::yield();
    if (changes_within(kSpinsBetweenYields, value, old)) return;
  }
  value.wait(old, std::memory_order_acquire);
}

#if defined(__linux__)
// Returns 0 or the system's error.
int restrict_to(std::thread& thread, std::span<const std::uint32_t> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : processors)
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  return pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
}
#endif

Status pin(std::thread& thread, std::uint32_t cpu) {
  // The system would also accept a processor outside the process's affinity mask.
  const std::vector<std::uint32_t> allowed = allowed_processors();
  if (!allowed.empty() && std::ranges::find(allowed, cpu) == allowed.end())
    return fail(Code::invalid, fmt::format("a thread cannot be pinned to processor {}: this process may use only {}",
                                           cpu, fmt::join(allowed, ", ")));
#if defined(__linux__)
  const int error = restrict_to(thread, {&cpu, 1});
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

ThreadPool::ThreadPool(std::uint32_t threads, std::span<const std::uint32_t> pin_to_cpus)
    : own_(std::max(threads, 1U)), groups_((own_.size() + kGroupThreads - 1) / kGroupThreads), fetching_(own_.size()) {
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

void ThreadPool::keep_on([[maybe_unused]] std::uint32_t thread,
                         [[maybe_unused]] std::span<const std::uint32_t> processors) {
#if defined(__linux__)
  static_cast<void>(restrict_to(workers_[thread - 1], processors));
#endif
}

void ThreadPool::stop() {
  stop_.store(true, std::memory_order_relaxed);
  step_.fetch_add(kMostShares + 1, std::memory_order_release);
  step_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work(std::uint32_t thread) {
  for (;;) {
    const Step step{step_.load(std::memory_order_acquire)};
    if (stop_.load(std::memory_order_relaxed)) return;
    if (step.shares() == 0) {
      fetch_own(thread, step);
      wait_for_job(step_, step.word);
    } else {
      take_shares(step, thread);
      wait_within_job(step_, step.word);
    }
  }
}

void ThreadPool::run(Job& job) {
  job_ = &job;
  end_fetching();
  begin_step(0);
  for (Step step{step_.load(std::memory_order_acquire)}; step.shares() != 0;
       step.word = step_.load(std::memory_order_acquire)) {
    take_shares(step, 0);
    wait_within_job(step_, step.word);
  }
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void ThreadPool::fetch(std::span<const Fetched> of_threads) {
  for (std::size_t thread = 1; thread < std::min(of_threads.size(), fetching_.size()); ++thread)
    for (std::size_t i = 0; i < kMostFetched; ++i) {
      Fetching::Part& part = fetching_[thread].parts[i];
      part.begin.store(of_threads[thread][i].data(), std::memory_order_relaxed);
      part.bytes.store(of_threads[thread][i].size(), std::memory_order_relaxed);
    }
  const Step idle = Step{step_.load(std::memory_order_relaxed)}.next(0);
  fetching_step_.store(idle.word, std::memory_order_relaxed);
  step_.store(idle.word, std::memory_order_release);
  step_.notify_all();
}

// Tells the threads, since steps of one share do not.
void ThreadPool::end_fetching() {
  const Step now{step_.load(std::memory_order_relaxed)};
  if (fetching_step_.load(std::memory_order_relaxed) == now.word)
    step_.store(now.next(0).word, std::memory_order_release);
}

void ThreadPool::fetch_own(std::uint32_t thread, Step step) const {
  if (fetching_step_.load(std::memory_order_relaxed) != step.word) return;
  for (const Fetching::Part& part : fetching_[thread].parts) {
    const std::byte* const begin = part.begin.load(std::memory_order_relaxed);
    const std::size_t bytes = begin == nullptr ? 0 : part.bytes.load(std::memory_order_relaxed);
    for (std::size_t line = 0; line < bytes; line += kLineBytes) {
      if (line % kBytesBetweenLooks == 0 && step_.load(std::memory_order_relaxed) != step.word) return;
      __builtin_prefetch(begin + line, 0, kSecondLevel);
    }
  }
}

// Only one thread is here at a time: the one that ended the last share of a step, or the caller of run().
void ThreadPool::begin_step(std::uint32_t thread) {
  std::uint32_t shares = next_step();
  for (; shares == 1; shares = next_step()) run_share(0, thread);
  const Step before{step_.load(std::memory_order_relaxed)};
  if (shares == 0 && before.shares() == 0) return;
  ended_.store(0, std::memory_order_relaxed);
  step_.store(before.next(shares).word, std::memory_order_release);
  // The end of a job concerns its caller alone.
  if (shares != 0 || thread != 0) step_.notify_all();
}

void ThreadPool::take_shares(Step step, std::uint32_t thread) {
  // Whoever ends the last share begins the next step.
  const auto ends_step = [&](std::uint32_t owner) {
    return end_shares_of(owner, step, take_shares_of(owner, step, thread));
  };
  if (ends_step(thread)) return begin_step(thread);
  if (changes_within(kSpinsBeforeHelping, step_, step.word)) return;
  for (std::uint32_t i = 1; i < threads(); ++i)
    if (ends_step((thread + i) % threads())) return begin_step(thread);
}

// Rounded up, so that the caller of run(), which is awake, has a share of every step.
std::uint32_t ThreadPool::first_share_of(std::uint32_t owner, Step step) const {
  return (step.shares() * owner + threads() - 1) / threads();
}

// Returns whether all shares of the step have ended.
bool ThreadPool::end_shares_of(std::uint32_t owner, Step step, std::uint32_t count) {
  if (count == 0) return false;
  const std::uint32_t group = owner / kGroupThreads;
  const std::uint32_t first_thread = group * kGroupThreads;
  const std::uint32_t end_thread = std::min(first_thread + kGroupThreads, threads());
  const std::uint32_t shares = first_share_of(end_thread, step) - first_share_of(first_thread, step);
  std::atomic<std::uint32_t>& ended = groups_[group].ended;
  if (ended.fetch_add(count, std::memory_order_acq_rel) + count != shares) return false;
  ended.store(0, std::memory_order_relaxed);  // for the next step
  return ended_.fetch_add(shares, std::memory_order_acq_rel) + shares == step.shares();
}

// Returns how many shares of `owner` were left. Once all are taken, none of a step that has ended can be.
std::uint32_t ThreadPool::take_shares_of(std::uint32_t owner, Step step, std::uint32_t thread) {
  const std::uint32_t begin = first_share_of(owner, step);
  const std::uint32_t size = first_share_of(owner + 1, step) - begin;
  std::atomic<std::uint64_t>& taken = own_[owner].taken;
  std::uint32_t count = 0;
  for (std::uint64_t seen = taken.load(std::memory_order_relaxed);;) {
    const Step last{seen};
    if (last.number() > step.number()) return count;
    const std::uint32_t next = last.number() == step.number() ? last.shares() : 0;
    if (next >= size) return count;
    const std::uint64_t mine = (step.number() << kShareBits) | (next + 1);
    if (!taken.compare_exchange_weak(seen, mine, std::memory_order_acq_rel, std::memory_order_relaxed)) continue;
    run_share(begin + next, thread);
    ++count;
    seen = mine;
  }
}

std::uint32_t ThreadPool::next_step() noexcept {
  try {
    return thrown_ ? 0 : job_->next_step();
  } catch (...) {
    note_exception();
    return 0;
  }
}

void ThreadPool::run_share(std::uint32_t share, std::uint32_t thread) noexcept {
  try {
    job_->run(share, thread);
  } catch (...) {
    note_exception();
  }
}

void ThreadPool::note_exception() {
  const std::scoped_lock lock(mutex_);
  if (!thrown_) thrown_ = std::current_exception();
}

}  // namespace shunt
