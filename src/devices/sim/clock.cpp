#include "devices/sim/clock.h"

#include <algorithm>

namespace shunt::sim {

VirtualClock::Time VirtualClock::now() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

void VirtualClock::at(Time when, std::function<void()> event) {
  const std::scoped_lock lock(mutex_);
  events_.emplace(std::pair(std::max(when, now_), number_++), std::move(event));
}

bool VirtualClock::advance() {
  // A second caller waits: the event it waits for may be the one now running.
  const std::scoped_lock one_at_a_time(advancing_);
  std::function<void()> event;
  {
    const std::scoped_lock lock(mutex_);
    if (events_.empty()) return false;
    auto first = events_.extract(events_.begin());
    now_ = first.key().first;
    event = std::move(first.mapped());
  }
  event();
  return true;
}

}  // namespace shunt::sim
