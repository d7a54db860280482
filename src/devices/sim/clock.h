// The time of simulated devices: it stands still until somebody lets the next event happen.
//
// Shared by all devices of a simulated machine, which schedule events on it. All calls are safe from many threads.
// Events happen one at a time, on the thread that calls advance(), and must not call advance() themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace shunt::sim {

class VirtualClock {
 public:
  using Time = std::chrono::nanoseconds;  // since an origin that its creator chooses

  explicit VirtualClock(Time start = {}) : now_(start) {}

  [[nodiscard]] Time now() const;
  // Schedules `event` for `when`, or for now if that is past. Events of the same time happen in the order of these
  // calls.
  void at(Time when, std::function<void()> event);
  // Moves to the earliest event and runs it. Returns false if there is none.
  bool advance();

 private:
  std::mutex advancing_;  // held while an event happens; locked before mutex_
  mutable std::mutex mutex_;
  Time now_;
  std::uint64_t number_ = 0;
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace shunt::sim
