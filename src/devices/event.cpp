#include "devices/event.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "devices/device.h"

namespace shunt {

struct Event::State {
  std::atomic<bool> done{false};
  Device* device = nullptr;
  std::mutex mutex;
  Status status;
  std::vector<std::function<void(const Status&)>> callbacks;
};

Event::Event(Status status) : state_(std::make_shared<State>()) {
  state_->status = std::move(status);
  state_->done.store(true, std::memory_order_release);
}

Event::Event(Device* device) : state_(std::make_shared<State>()) {
  state_->device = device;
  state_->callbacks.reserve(1);  // so that work in flight never lacks room for a callback
}

bool Event::poll() const { return state_->done.load(std::memory_order_acquire); }

void Event::on_done(std::function<void(const Status&)> callback) {
  {
    const std::scoped_lock lock(state_->mutex);
    if (!poll()) {
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  callback(state_->status);
}

Status Event::wait() {
  while (!poll())
    if (state_->device == nullptr || !state_->device->advance()) state_->done.wait(false, std::memory_order_acquire);
  return status();
}

Status Event::status() const { return state_->status; }

void Event::complete(Status status) {
  std::vector<std::function<void(const Status&)>> callbacks;
  {
    const std::scoped_lock lock(state_->mutex);
    if (poll()) return;
    state_->status = std::move(status);
    callbacks.swap(state_->callbacks);
    state_->done.store(true, std::memory_order_release);
  }
  state_->done.notify_all();
  for (const auto& callback : callbacks) callback(state_->status);
}

}  // namespace shunt
