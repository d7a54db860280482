// How long something takes, by the monotonic clock. A plain value; one thread at a time.
#pragma once

#include <chrono>

namespace shunt {

class Stopwatch {
 public:
  // Since it was made.
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace shunt
