// Decides when to look for another plan because devices are not as predicted. Planning takes time, and so does
// changing plans. So looks come at ever longer intervals, and a change must pay within as many runs as there have been.
// Noise then costs no more than it may gain. A plain value; one thread at a time.
#pragma once

#include <cstddef>
#include <optional>

#include "run/pool/device_pool.h"
#include "run/pool/running_median.h"

namespace shunt {

class PlanReview {
 public:
  // Adds a run of the plan, which took `us`. Planning again takes time in proportion to `units`.
  void add_run(double us, std::size_t units);
  // Starts over with another plan.
  void start_over() { run_us_ = {}; }

  // Returns whether it is time to look, if there is a reason.
  [[nodiscard]] bool is_time() const;
  // Returns whether a better plan did not pay yet, which is a reason.
  [[nodiscard]] bool knows_better() const { return knows_better_; }
  // Begins a look and returns what a run takes; nothing while too few runs were seen. The next look is due after as
  // much time as all runs took.
  [[nodiscard]] std::optional<double> begin();
  // Returns whether gaining `gain_us` per run for `cost_us` once is worth it over `runs` runs. If it is not worth it
  // yet, another look is due.
  [[nodiscard]] bool is_worth(double gain_us, double cost_us, double runs);

  // The time of all runs, and their number.
  [[nodiscard]] double ran_us() const { return ran_us_; }
  [[nodiscard]] double runs() const { return runs_; }
  // The time to plan all steps of the graph again.
  [[nodiscard]] double planning_us() const;

 private:
  RunningMedian run_us_;
  double ran_us_ = 0;
  double runs_ = 0;
  double look_again_us_ = 0;  // the next look is due when runs took so long
  double look_us_ = 0;        // the time of a look
  bool knows_better_ = false;
};

// Predicts the time to copy the weights to where a plan has them.
[[nodiscard]] double weights_us(const Plan& plan, const DeviceSet& set);

}  // namespace shunt
