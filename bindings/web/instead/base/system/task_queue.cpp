// A queue without threads: WebAssembly has no other thread here. Its caller runs a batch when it starts it.
#include "base/system/task_queue.h"

namespace shunt {

TaskQueue::TaskQueue(std::uint32_t) {}

TaskQueue::~TaskQueue() = default;

void TaskQueue::start(Batch& batch) {
  for (; batch.left_ != 0; --batch.left_) batch.task_(batch.begun_++);
}

bool TaskQueue::has_ended(const Batch& batch) { return batch.left_ == 0; }

void TaskQueue::wait(Batch&) {}

}  // namespace shunt
