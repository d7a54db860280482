#include "run/measure/other_work.h"

#include <algorithm>

namespace shunt {
namespace {

// The system counts too coarsely to judge shorter times.
constexpr double kLeastSeconds = 0.1;

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

}  // namespace shunt
