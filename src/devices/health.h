// Whether a device still answers, as its one worker finds out and any thread may ask.
#pragma once

#include <mutex>

#include "devices/device.h"

namespace shunt {

class HealthRecord {
 public:
  [[nodiscard]] Health get() const {
    const std::scoped_lock lock(mutex_);
    return health_;
  }

  // Passes a status on. The first device_lost or timed_out stays: handles made before are invalid from then on.
  Status note(Status status) {
    const bool is_end = !status && (status.error().code == Code::device_lost || status.error().code == Code::timed_out);
    return is_end ? lose(std::move(status)) : status;
  }

  // The same for an error of any code. REQUIRES: !status.
  Status lose(Status status) {
    const std::scoped_lock lock(mutex_);
    if (health_.status) health_ = {.status = status, .epoch = health_.epoch + 1};
    return status;
  }

 private:
  mutable std::mutex mutex_;
  Health health_;
};

}  // namespace shunt
