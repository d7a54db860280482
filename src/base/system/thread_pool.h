// Threads that run one job together, a step at a time: a step begins a microsecond or two after the one before.
//
// The pool owns threads() - 1 threads; the caller of run() is thread 0. One run() at a time. A step is cut into shares,
// and a share belongs to the thread that takes it: each thread takes its own first, the same in every step, then those
// of threads that are late. So no step waits for a thread that has not begun. Threads without a job spin for a moment
// (the next usually comes soon) and then sleep, so an idle pool costs nothing; within a job they wait longer first.
// Those that will read memory in the next job may fetch some of it before, while the caller waits for something else.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "shunt/status.h"

namespace shunt {

class ThreadPool {
 public:
  static constexpr std::uint32_t kShareBits = 16;
  static constexpr std::uint32_t kMostShares = (1U << kShareBits) - 1;

  // `pin_to_cpus[t]` is the processor of thread t; empty: the system decides. The caller's own thread is never pinned.
  // status() reports failures; the pool works either way, with the threads it has.
  ThreadPool(std::uint32_t threads, std::span<const std::uint32_t> pin_to_cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::uint32_t threads() const { return static_cast<std::uint32_t>(workers_.size()) + 1; }

  // Errors: out_of_memory if the system refused a thread; invalid if a thread was to run on a processor that this
  // process may not use; internal.
  [[nodiscard]] const Status& status() const { return status_; }

  // Has a thread run only on these processors, if the system lets it. REQUIRES: 0 < thread < threads().
  void keep_on(std::uint32_t thread, std::span<const std::uint32_t> processors);

  class Job {
   public:
    virtual ~Job() = default;
    // Returns the number of shares of the next step, at most kMostShares; 0: the job has ended. Called by one thread at
    // a time, when all shares of the step before have ended. A step of one share runs on the thread that begins it.
    [[nodiscard]] virtual std::uint32_t next_step() = 0;
    // Runs a share of the step on one of the pool's threads.
    virtual void run(std::uint32_t share, std::uint32_t thread) = 0;
  };

  // Returns when the job has ended. What a share throws is rethrown here after its step, which is then the last.
  void run(Job& job);

  // Memory that one thread reads soon. It need not exist any more.
  static constexpr std::size_t kMostFetched = 4;
  using Fetched = std::array<std::span<const std::byte>, kMostFetched>;
  // Has thread t fetch `of_threads[t]` into its caches, until the next job. Returns at once, and wakes threads.
  // REQUIRES: the same caller as of run(), between two of them.
  void fetch(std::span<const Fetched> of_threads);

  // Calls work(share) for threads() shares, one on each thread unless threads are late.
  template <std::invocable<std::uint32_t> Work>
  void run(const Work& work) {
    struct OneStep final : Job {
      OneStep(const Work& its_work, std::uint32_t its_shares) : work(its_work), shares(its_shares) {}
      std::uint32_t next_step() override { return std::exchange(shares, 0); }
      void run(std::uint32_t share, std::uint32_t) override { work(share); }
      const Work& work;
      std::uint32_t shares;
    } job(work, threads());
    run(static_cast<Job&>(job));
  }

 private:
  // The number of a step, counted over all jobs, and its shares; no shares between jobs.
  struct Step {
    std::uint64_t word = 0;
    [[nodiscard]] std::uint64_t number() const { return word >> kShareBits; }
    [[nodiscard]] std::uint32_t shares() const { return static_cast<std::uint32_t>(word & kMostShares); }
    [[nodiscard]] Step next(std::uint32_t its_shares) const { return {((number() + 1) << kShareBits) | its_shares}; }
  };
  // One thread's shares of a step: how many of them have been taken, with the number of the step.
  struct alignas(64) Own {
    std::atomic<std::uint64_t> taken{0};
  };
  // Memory that a thread fetches. Any mix of two of its values is harmless.
  struct alignas(64) Fetching {
    struct Part {
      std::atomic<const std::byte*> begin{nullptr};
      std::atomic<std::size_t> bytes{0};
    };
    std::array<Part, kMostFetched> parts;
  };
  // Neighbouring threads, whose shares are counted together: counting all in one place would take many threads longer.
  static constexpr std::uint32_t kGroupThreads = 4;
  struct alignas(64) Group {
    std::atomic<std::uint32_t> ended{0};  // of the shares of the group's threads
  };

  void start(std::uint32_t workers, std::span<const std::uint32_t> pin_to_cpus);
  void stop();
  void work(std::uint32_t thread);
  void fetch_own(std::uint32_t thread, Step step) const;
  void end_fetching();
  void begin_step(std::uint32_t thread);
  void take_shares(Step step, std::uint32_t thread);
  std::uint32_t take_shares_of(std::uint32_t owner, Step step, std::uint32_t thread);
  bool end_shares_of(std::uint32_t owner, Step step, std::uint32_t count);
  std::uint32_t first_share_of(std::uint32_t owner, Step step) const;
  std::uint32_t next_step() noexcept;
  void run_share(std::uint32_t share, std::uint32_t thread) noexcept;
  void note_exception();

  std::vector<std::thread> workers_;
  Status status_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::exception_ptr thrown_;  // the job's first exception; guarded by mutex_ during a step
  Job* job_ = nullptr;         // read by threads that hold a share, which keeps the job from ending
  std::vector<Own> own_;
  std::vector<Group> groups_;
  std::vector<Fetching> fetching_;                   // by thread
  std::atomic<std::uint64_t> fetching_step_{0};      // the Step, without shares, in which they fetch it
  alignas(64) std::atomic<std::uint64_t> step_{0};   // a Step
  alignas(64) std::atomic<std::uint32_t> ended_{0};  // shares of the groups that have ended the step
};

// More threads than any machine has cores are a mistake.
inline constexpr std::uint32_t kMostThreads = 1024;

// Returns the number of cores that this process may use, at least 1.
[[nodiscard]] std::uint32_t usable_cores();

}  // namespace shunt
