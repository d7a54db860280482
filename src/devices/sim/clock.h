// Time as simulated devices know it: it stands still until somebody lets the next event happen.
//
// Shared by all devices of a simulated machine, which fill it with events. All calls are safe from many threads; events
// happen one at a time, on the thread that calls advance(), and must not call it themselves.
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
  using Time = std::chrono::nanoseconds;  // since an origin that only the maker knows

  explicit VirtualClock(Time start = {}) : now_(start) {}

  [[nodiscard]] Time now() const;
  // `event` is to happen at `when`, or now if that is past. Events of one time happen in the order of these calls.
  void at(Time when, std::function<void()> event);
  // Goes on to the earliest event and lets that one happen. False: there is none.
  bool advance();

 private:
  std::mutex advancing_;  // held while an event happens; before mutex_
  mutable std::mutex mutex_;
  Time now_;
  std::uint64_t number_ = 0;
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace shunt::sim
