#include "base/system/task_queue.h"

#include <system_error>
#include <utility>

namespace shunt {

TaskQueue::TaskQueue(std::uint32_t threads) {
  try {
    threads_.reserve(threads);
    while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    return;  // with fewer threads, which only takes longer
  } catch (...) {
    stop();
    throw;
  }
}

TaskQueue::~TaskQueue() { stop(); }

void TaskQueue::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  started_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TaskQueue::start(Batch& batch) {
  if (batch.count_ == 0) return;
  {
    const std::scoped_lock lock(mutex_);
    batches_.push_back(&batch);
  }
  started_.notify_one();
}

bool TaskQueue::has_ended(const Batch& batch) {
  const std::scoped_lock lock(mutex_);
  return batch.left_ == 0;
}

void TaskQueue::wait(Batch& batch) {
  std::unique_lock lock(mutex_);
  while (batch.left_ != 0) {
    if (batch.begun_ == batch.count_)
      ended_.wait(lock);
    else
      run_next(lock);
  }
  if (batch.thrown_) std::rethrow_exception(std::exchange(batch.thrown_, nullptr));
}

void TaskQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    started_.wait(lock, [this] { return stops_ || !batches_.empty(); });
    if (stops_) return;
    run_next(lock);
  }
}

void TaskQueue::run_next(std::unique_lock<std::mutex>& lock) {
  Batch& batch = *batches_.front();
  const std::size_t task = batch.begun_++;
  if (batch.begun_ == batch.count_) batches_.pop_front();
  const bool has_more = !batches_.empty();
  lock.unlock();
  // Each thread wakes the next, so that starting a batch takes its caller no longer than waking one.
  if (has_more) started_.notify_one();
  std::exception_ptr thrown;
  try {
    batch.task_(task);
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  if (thrown && !batch.thrown_) batch.thrown_ = thrown;
  if (--batch.left_ == 0) ended_.notify_all();
}

}  // namespace shunt
