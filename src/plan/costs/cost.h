// Predicted times of ops and copies on one device, each with its uncertainty.
//
// Where nothing was measured: a roofline over the prior rates of the device. Where it was: the
// roofline of the best rates that its kind of op reached, corrected by what the shapes nearest to this one took. The
// correction is a Gaussian process over the logarithms of flops, bytes read and bytes written: a shape that was
// measured is predicted as it was, one far from all as the roofline says, and the uncertainty grows on the way
// (Rasmussen and Williams, Gaussian Processes for Machine Learning, chapter 2). Frozen once it is made; any thread.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "plan/costs/profile.h"
#include "plan/costs/profile_limits.h"

namespace shunt {

struct Prediction {
  double us = 0;
  double uncertainty_us = 0;
};

// Of one kind of op.
class TimeCurve {
 public:
  // REQUIRES: points is not empty.
  TimeCurve(std::span<const MeasuredOp> points, double op_us);
  [[nodiscard]] Prediction predict(const Cost& cost) const;
  // The best that any of the points reached.
  [[nodiscard]] const ComputeRates& rates() const { return rates_; }

 private:
  struct Point {
    std::array<double, 3> at;  // logarithms of the work
    double strength;           // of its pull on the correction
    double spread;
  };
  [[nodiscard]] double roofline_us(const Cost& cost) const;

  double op_us_;
  ComputeRates rates_;
  std::vector<Point> points_;
};

class DeviceCost {
 public:
  // `measured` may be null; the device then has its priors only. Of a profile only what can be true is used
  // (profile_limits.h).
  DeviceCost(const DeviceInfo& device, const DeviceProfile* measured);

  // Empty, or how the device was seen to compute an op wrongly.
  [[nodiscard]] std::string_view refusal(Op op) const;
  // Of an op within a program.
  [[nodiscard]] Prediction compute(const OpCall& call) const;
  // Of starting a program, and how much more that is where the device had nothing to do before.
  [[nodiscard]] double launch_us() const { return launch_us_ * correction_; }
  [[nodiscard]] double wake_us() const { return wake_us_ * correction_; }
  // Of a copy from, and to, the host's memory; of nothing where that is its own.
  [[nodiscard]] const LinkRates& to_device() const { return to_device_; }
  [[nodiscard]] const LinkRates& from_device() const { return from_device_; }
  // Copies in one direction wait for those in the other.
  [[nodiscard]] bool one_way_at_a_time() const { return one_way_at_a_time_; }
  // Somebody measured it, or knows it as well as that.
  [[nodiscard]] bool is_measured() const { return is_measured_; }
  // What was measured has to be measured again: its profile has numbers that cannot be true, runs have contradicted it,
  // or nobody has confirmed it for long. `now_s`: unix_seconds().
  [[nodiscard]] bool is_due(double now_s) const;
  [[nodiscard]] bool is_doubted() const { return is_doubted_; }
  void doubt() { is_doubted_ = true; }
  [[nodiscard]] bool has_profile() const { return has_profile_; }
  // DeviceProfile::checked_s, as it was read; 0 without a profile.
  [[nodiscard]] double checked_s() const { return checked_s_; }
  // As devices turned out to be: everything takes so many times what it would without this.
  void correct(double factor) { correction_ = factor; }
  [[nodiscard]] double correction() const { return correction_; }

 private:
  void use(const DeviceInfo& device, const UsableProfile& measured);
  [[nodiscard]] Prediction alone(const OpCall& call) const;

  PriorRates prior_;
  double launch_us_;
  double wake_us_ = 0;
  LinkRates to_device_;
  LinkRates from_device_;
  bool one_way_at_a_time_ = false;
  bool is_measured_;
  bool has_profile_ = false;
  bool is_doubted_ = false;
  bool has_far_records_ = false;
  double checked_s_ = 0;
  double few_tokens_ratio_ = 1;
  double many_tokens_ratio_ = 1;
  double correction_ = 1;
  std::map<std::string, std::string, std::less<>> refused_;
  std::map<std::string, TimeCurve, std::less<>> curves_;  // by kind
};

// What a device takes for a typical piece of work of a language model, to compare devices before a model is known:
// reading a prompt of 512 tokens and generating 128, of the products alone.
[[nodiscard]] double typical_us(const DeviceCost& cost);

// The priors of each device.
[[nodiscard]] std::vector<DeviceCost> prior_costs(std::span<Device* const> devices);

}  // namespace shunt
