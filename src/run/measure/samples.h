// Repeated measurements of one thing. A plain value; one thread at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace shunt {

// REQUIRES for the getters: not empty.
class Samples {
 public:
  void add(double value) { values_.insert(std::ranges::upper_bound(values_, value), value); }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] std::size_t count() const { return values_.size(); }
  [[nodiscard]] double median() const {
    const std::size_t middle = values_.size() / 2;
    return values_.size() % 2 == 1 ? values_[middle] : (values_[middle - 1] + values_[middle]) / 2;
  }
  // The value that this part of the samples, from 0 to 1, does not exceed.
  [[nodiscard]] double quantile(double part) const {
    return values_[static_cast<std::size_t>(std::lround(part * static_cast<double>(values_.size() - 1)))];
  }
  [[nodiscard]] double least() const { return values_.front(); }
  [[nodiscard]] double most() const { return values_.back(); }

 private:
  std::vector<double> values_;  // sorted
};

}  // namespace shunt
