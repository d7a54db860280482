// The end of something a device was asked to do. Any error of a submission may surface here.
//
// An Event is a shared handle: copies speak of the same completion. All calls are safe from many threads.
// Devices that have no thread of their own make progress when somebody calls Device::advance(); wait() does
// so for its own device.
#pragma once

#include <functional>
#include <memory>

#include "shunt/status.h"

namespace shunt {

class Device;

class Event {
 public:
  // Done already, with that outcome.
  explicit Event(Status status);
  // Pending. `device` must outlive it; wait() calls device->advance().
  explicit Event(Device* device);

  [[nodiscard]] bool poll() const;
  // Calls `callback` once: now if done, else on the thread that completes the event.
  void on_done(std::function<void(const Status&)> callback);
  // Blocks until done and returns the outcome.
  [[nodiscard]] Status wait();
  // The outcome. REQUIRES: poll().
  [[nodiscard]] Status status() const;

  // For devices: ends the event. Only the first call counts.
  void complete(Status status);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shunt
