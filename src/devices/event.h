// The completion of a request to a device. Any error of a submission may surface here.
//
// An Event is a shared handle: copies refer to the same completion. All calls are safe from many threads. Devices
// without threads of their own make progress when somebody calls Device::advance(); wait() does so for its own device.
#pragma once

#include <functional>
#include <memory>

#include "shunt/status.h"

namespace shunt {

class Device;

class Event {
 public:
  // Makes an event that is done, with this outcome.
  explicit Event(Status status);
  // Makes a pending event. `device` must outlive it; wait() calls device->advance().
  explicit Event(Device* device);

  [[nodiscard]] bool poll() const;
  // Calls `callback` once: now if done, else on the thread that completes the event.
  void on_done(std::function<void(const Status&)> callback);
  // Blocks until done and returns the outcome.
  [[nodiscard]] Status wait();
  // Returns the outcome. REQUIRES: poll().
  [[nodiscard]] Status status() const;

  // For devices: completes the event. Only the first call counts.
  void complete(Status status);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shunt
