// The median of the last values: as long as fewer than half of them are wrong, it lies between right ones. A plain
// value; one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

namespace shunt {

class RunningMedian {
 public:
  static constexpr std::size_t kWindow = 31;
  static constexpr std::size_t kEnough = 15;

  // Ignores values that are not finite or not above zero.
  void add(double value) {
    if (std::isfinite(value) && value > 0) last_[count_++ % kWindow] = value;
  }

  // Returns nothing before kEnough values were seen.
  [[nodiscard]] std::optional<double> get() const {
    if (count_ < kEnough) return std::nullopt;
    auto sorted = last_;
    const auto size = static_cast<std::ptrdiff_t>(std::min(count_, kWindow));
    std::nth_element(sorted.begin(), sorted.begin() + size / 2, sorted.begin() + size);
    return sorted[static_cast<std::size_t>(size / 2)];
  }

 private:
  std::array<double, kWindow> last_{};
  std::size_t count_ = 0;
};

}  // namespace shunt
