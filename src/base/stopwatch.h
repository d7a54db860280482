// Measures elapsed time by the monotonic clock. A plain value; one thread at a time.
#pragma once

#include <chrono>

namespace shunt {

class Stopwatch {
 public:
  // Time since construction.
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace shunt
