// When it pays to look for another plan, as devices turned out not to be as fast as they were taken for. Planning takes
// time, and so does the move: it is looked for in ever longer intervals, and worth what it gains in as many runs as
// there have been, so that noise does not cost more than it may gain. A plain value; one thread at a time.
#pragma once

#include <cstddef>
#include <optional>

#include "run/pool/device_pool.h"
#include "run/pool/running_median.h"

namespace shunt {

class PlanReview {
 public:
  // The plan has run once, and took so long; to plan it again takes as long as its units are many.
  void add_run(double us, std::size_t units);
  // Another plan runs from now on.
  void begin_anew() { run_us_ = {}; }

  // Time to look: devices are off their predictions, or a better plan did not yet pay.
  [[nodiscard]] bool is_due(const DevicePool& device_pool) const;
  // What a run takes; nothing while too few were seen. The next look is after as much time as all runs took.
  [[nodiscard]] std::optional<double> begin();
  // To gain so much per run for what it costs once, in as many runs as there have been. What is not worth it yet makes
  // another look due.
  [[nodiscard]] bool is_worth(double gain_us, double cost_us, double runs);

  // What all runs took.
  [[nodiscard]] double ran_us() const { return ran_us_; }
  // What it costs to look for all the plans of a graph's steps.
  [[nodiscard]] double planning_us() const;

 private:
  RunningMedian run_us_;
  double ran_us_ = 0;
  double look_again_us_ = 0;  // when runs took so much
  double look_us_ = 0;        // what looking takes
  bool knows_better_ = false;
};

// What it takes to copy the weights to where a plan has them.
[[nodiscard]] double weights_us(const Plan& plan, const DeviceSet& set);

}  // namespace shunt
