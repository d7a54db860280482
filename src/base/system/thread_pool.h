// Threads that run one job together: fork and join take a microsecond or two, with barriers in between.
//
// The pool owns threads() - 1 threads; the caller of run() is thread 0. One run() at a time. Waiting threads spin for a
// moment (the next job usually comes soon) and then sleep, so an idle pool costs nothing; within a job they wait
// longer first.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "shunt/status.h"

namespace shunt {

class ThreadPool {
 public:
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

  // Calls job(thread) once on every thread and returns when all have returned. Rethrows here what one of them throws.
  // REQUIRES: a job with barriers throws nothing, because others would wait forever.
  template <class Job>
  void run(const Job& job) {
    run_erased([](const void* context, std::uint32_t thread) { (*static_cast<const Job*>(context))(thread); }, &job);
  }

  // Waits until every thread has arrived. REQUIRES: called inside a job, by all threads alike.
  void barrier();

 private:
  using Function = void (*)(const void* context, std::uint32_t thread);
  void run_erased(Function function, const void* context);
  void start(std::uint32_t workers, std::span<const std::uint32_t> pin_to_cpus);
  void stop();
  void work(std::uint32_t thread);
  void call(Function function, const void* context, std::uint32_t thread) noexcept;

  std::vector<std::thread> workers_;
  Status status_;
  std::mutex mutex_;
  std::exception_ptr thrown_;  // the job's first exception; guarded by mutex_
  Function function_ = nullptr;
  const void* context_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> job_{0};      // number of jobs so far
  alignas(64) std::atomic<std::uint32_t> running_{0};  // workers that have not finished the job
  alignas(64) std::atomic<std::uint32_t> arrived_{0};  // at the barrier
  alignas(64) std::atomic<std::uint32_t> passed_{0};   // barriers so far
  std::atomic<bool> stop_{false};
};

// More threads than any machine has cores are a mistake.
inline constexpr std::uint32_t kMostThreads = 1024;

// Returns the number of cores that this process may use, at least 1.
[[nodiscard]] std::uint32_t usable_cores();

}  // namespace shunt
