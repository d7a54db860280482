// Where the time of runs went, by what was going on at each moment. A plain value; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>

#include "shunt/trace.h"

namespace shunt::trace {

enum class Activity : std::uint8_t {
  processor,  // a host processor computes
  device,     // another device computes
  weights,    // weights are on their way to a device
  values,     // values are on their way
};
inline constexpr std::size_t kActivities = 4;

class RunTimes {
 public:
  // Counts the successful runs. `processors`: the ids of host processors; `weights`:
  // the names of weights, of which parts may travel.
  RunTimes(const Recording& recording, const std::set<std::string, std::less<>>& processors,
           const std::set<std::string, std::less<>>& weights);

  [[nodiscard]] std::uint64_t runs() const { return runs_; }
  // Means of a run.
  [[nodiscard]] double us() const { return mean(total_us_); }
  [[nodiscard]] double weight_bytes() const { return mean(weight_bytes_); }
  // The time in which this went on, and none of the others.
  [[nodiscard]] double us_of(Activity activity, std::initializer_list<Activity> others = {}) const;
  // The time in which nothing went on: starting work, and noticing its end.
  [[nodiscard]] double idle_us() const { return mean(us_by_activities_[0]); }

 private:
  [[nodiscard]] double mean(double sum) const { return runs_ == 0 ? 0 : sum / static_cast<double>(runs_); }

  std::uint64_t runs_ = 0;
  double total_us_ = 0;
  double weight_bytes_ = 0;
  std::array<double, std::size_t{1} << kActivities> us_by_activities_{};  // by the set of what went on
};

}  // namespace shunt::trace
