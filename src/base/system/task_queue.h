// Threads that run batches of tasks, in the order in which these were started, while the caller goes on.
//
// The caller helps while it waits, so a queue without threads runs tasks then. A thread that has nothing to do
// sleeps. The calls are for one thread at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shunt {

class TaskQueue {
 public:
  // Has as many threads as the system gives, `threads` at most.
  explicit TaskQueue(std::uint32_t threads);
  // Waits for tasks that run; those that have not begun never do.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // May be fewer than were asked for.
  [[nodiscard]] std::size_t threads() const { return threads_.size(); }

  // Tasks that are waited for together: task(0) to task(count - 1).
  class Batch {
   public:
    Batch(std::size_t count, std::function<void(std::size_t)> task)
        : task_(std::move(task)), count_(count), left_(count) {}

   private:
    friend class TaskQueue;
    std::function<void(std::size_t)> task_;
    std::size_t count_;
    std::size_t begun_ = 0;
    std::size_t left_;  // that have not ended
    std::exception_ptr thrown_;
  };

  // REQUIRES: the batch stays where it is until wait() has returned or the queue has ended.
  void start(Batch& batch);
  [[nodiscard]] bool has_ended(const Batch& batch);
  // Returns when all its tasks have ended; runs them as long as some have not begun. Rethrows the first exception of
  // one of them.
  void wait(Batch& batch);

 private:
  void stop();
  void work();
  // Runs the next task. `lock` is open meanwhile. REQUIRES: there is one.
  void run_next(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;            // of what follows, and of all batches
  std::deque<Batch*> batches_;  // with tasks that have not begun
  bool stops_ = false;
  std::condition_variable started_;  // or the queue ends
  std::condition_variable ended_;    // a batch
  std::vector<std::thread> threads_;
};

}  // namespace shunt
