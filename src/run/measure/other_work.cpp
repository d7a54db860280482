#include "run/measure/other_work.h"

#include <algorithm>
#include <utility>

namespace shunt {
namespace {

// The system counts too coarsely to judge shorter times.
constexpr double kLeastSeconds = 0.1;
// The share of the processors that others may take without disturbing a measurement.
constexpr double kMostTaken = 0.2;

}  // namespace

OtherWork::OtherWork(const DeviceInfo& device, const ProcessorTimesSource& times)
    : threads_(std::max(device.compute_units, 1U)) {
  if (device.is_host_cpu()) times_ = times;
  if (times_) begin_ = times_();
}

double OtherWork::share() const {
  const auto now = begin_ ? times_() : std::nullopt;
  if (!now || now->wall_s - begin_->wall_s < kLeastSeconds) return 0;
  const double others_s = (now->all_s - begin_->all_s) - (now->own_s - begin_->own_s);
  const double taken = std::max(others_s, 0.0) / (now->wall_s - begin_->wall_s);
  const double left = std::max(now->processors - taken, 0.0);
  return std::max(1 - left / std::min<double>(threads_, now->processors), 0.0);
}

bool WatchedProfile::is_disturbed() const { return taken > kMostTaken; }

Result<WatchedProfile> measure_watched(const DeviceInfo& device, const ProcessorTimesSource& times,
                                       const std::function<Result<DeviceProfile>()>& measure,
                                       const std::function<bool(const WatchedProfile&)>& may_repeat) {
  const auto measured = [&]() -> Result<WatchedProfile> {
    const OtherWork others(device, times);
    SHUNT_TRY_ASSIGN(DeviceProfile profile, measure());
    return WatchedProfile{.profile = std::move(profile), .taken = others.share()};
  };
  SHUNT_TRY_ASSIGN(WatchedProfile first, measured());
  if (first.is_disturbed() && may_repeat(first)) return measured();
  return first;
}

}  // namespace shunt
