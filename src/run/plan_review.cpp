#include "run/plan_review.h"

#include <algorithm>

#include "devices/device.h"

namespace shunt {
namespace {

// The planning time of a unit on a slow processor. Runs must take so many times the planning time before the first
// look. If there is a better plan, so many plans are made.
constexpr double kPlanUs = 20;
constexpr double kTimesOfLooking = 20;
constexpr double kPlansInAll = 25;

}  // namespace

void PlanReview::add_run(double us, std::size_t units) {
  run_us_.add(us);
  ran_us_ += us;
  ++runs_;
  look_us_ = kPlanUs * static_cast<double>(units);
}

bool PlanReview::is_time() const { return ran_us_ >= std::max(look_again_us_, kTimesOfLooking * look_us_); }

std::optional<double> PlanReview::begin() {
  const auto us = run_us_.get();
  if (!us) return std::nullopt;
  look_again_us_ = 2 * ran_us_;
  knows_better_ = false;
  return us;
}

bool PlanReview::is_worth(double gain_us, double cost_us, double runs) {
  if (gain_us <= 0) return false;
  knows_better_ = gain_us * runs < cost_us;
  return !knows_better_;
}

double PlanReview::planning_us() const { return kPlansInAll * look_us_; }

double weights_us(const Plan& plan, const DeviceSet& set) {
  double us = 0;
  for (const Residence& residence : plan.residences)
    if (residence.kind == StorageKind::weight && set.devices[residence.device]->info().memory_pool != kHostPool)
      us += static_cast<double>(residence.bytes) / set.costs[residence.device].to_device().bytes_per_s * 1e6;
  for (const Step& step : plan.steps)
    if (step.transfer.stays) us += set.costs[step.transfer.to].weights_to_device().copy_us(step.transfer.bytes);
  return us;
}

}  // namespace shunt
