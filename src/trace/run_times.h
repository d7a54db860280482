// Where the time of runs went, by what was going on at each moment. Plain values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/trace.h"

namespace shunt::trace {

// The reason of the transfers of weights, which tells them from those of values.
inline constexpr std::string_view kWeightOfStep = "a weight that this step needs there";

enum class Activity : std::uint8_t {
  processor,  // a host processor computes
  device,     // another device computes
  weights,    // weights are on their way to a device
  values,     // values are on their way
};
inline constexpr std::size_t kActivities = 4;

// The times of a group of runs.
class RunTimes {
 public:
  [[nodiscard]] std::uint64_t runs() const { return runs_; }
  // Means of a run.
  [[nodiscard]] double us() const;
  [[nodiscard]] double predicted_us() const { return mean(predicted_us_); }
  [[nodiscard]] double weight_bytes() const { return mean(static_cast<double>(weight_bytes_)); }
  // The time in which this went on, whatever else did.
  [[nodiscard]] double us_of(Activity activity) const { return us_without(activity, 0); }
  // For each activity the time in which it went on, and none of those before it. Together with idle_us() they add up
  // to us(). REQUIRES: each activity once.
  [[nodiscard]] std::array<double, kActivities> us_in_turn(const std::array<Activity, kActivities>& order) const;
  // The time in which nothing went on: starting work, and noticing its end.
  [[nodiscard]] double idle_us() const { return mean(trace::us_of(ns_[0])); }

 private:
  friend class RunSweep;
  [[nodiscard]] double us_without(Activity activity, unsigned others) const;
  [[nodiscard]] double mean(double sum) const { return runs_ == 0 ? 0 : sum / static_cast<double>(runs_); }

  std::uint64_t runs_ = 0;
  double predicted_us_ = 0;
  std::uint64_t weight_bytes_ = 0;
  std::array<std::uint64_t, std::size_t{1} << kActivities> ns_{};  // by the set of what went on
};

// Returns the group of a run, or nothing if it does not count.
using GroupOfRun = std::function<std::optional<std::size_t>(const ExecutionEvent& run)>;

// Returns the times of `groups` groups of runs. Runs that failed, or whose first events were overwritten, are left out.
// `processors`: the ids of host processors.
[[nodiscard]] std::vector<RunTimes> run_times_of(const Recording& recording,
                                                 const std::set<std::string, std::less<>>& processors,
                                                 std::size_t groups, const GroupOfRun& group_of);

}  // namespace shunt::trace
