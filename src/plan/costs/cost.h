// Predicts the times of ops and copies on one device, each with its uncertainty.
//
// Without measurements, an op's time is a roofline over the device's prior rates. With them, it is the roofline of the
// best rates that its kind of op reached, corrected by the times of the nearest measured shapes. The correction is a
// Gaussian process over the logarithms of flops, bytes read and bytes written (Rasmussen and Williams, Gaussian
// Processes for Machine Learning, chapter 2). A measured shape is predicted as measured, a distant one as the roofline
// says, and the uncertainty grows in between. Constant once made, except for the calls that are not const; const calls
// are safe from any thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "plan/costs/outliers.h"
#include "plan/costs/profile.h"
#include "plan/costs/profile_limits.h"

namespace shunt {

struct Prediction {
  double us = 0;
  double uncertainty_us = 0;
};

// Predicts the times of one kind of op.
class TimeCurve {
 public:
  // REQUIRES: points is not empty.
  TimeCurve(std::span<const MeasuredOp> points, double op_us);
  [[nodiscard]] Prediction predict(const Cost& cost) const;
  // Returns whether exactly this shape was measured.
  [[nodiscard]] bool has(const Cost& cost) const;
  // The best rates that any point reached.
  [[nodiscard]] const ComputeRates& rates() const { return rates_; }

 private:
  struct Point {
    Cost cost;
    std::array<double, 3> at;  // logarithms of the work
    double strength;           // weight in the correction
    double spread;
  };
  [[nodiscard]] double roofline_us(const Cost& cost) const;

  double op_us_;
  ComputeRates rates_;
  std::vector<Point> points_;
};

class DeviceCost {
 public:
  // `measured` may be null; the device then has only its priors. Implausible numbers of a profile are ignored
  // (profile_limits.h).
  DeviceCost(const DeviceInfo& device, const DeviceProfile* measured);

  // Returns how the device was seen to compute an op wrongly; empty: it was not.
  [[nodiscard]] std::string_view refusal(Op op) const;
  // Predicts an op within a program that computes its products so; nullopt: as in the nearest shape that was measured.
  [[nodiscard]] Prediction compute(const OpCall& call, std::optional<Arithmetic> arithmetic = {}) const;
  // Returns whether a prediction rests on measurements of alike ops, if on any.
  [[nodiscard]] bool rests_on_measurements(const Prediction& prediction) const;
  // The time to start a program, and the extra time if the device was idle before.
  [[nodiscard]] double launch_us() const { return launch_us_ * correction_; }
  [[nodiscard]] double wake_us() const { return wake_us_ * correction_; }
  // Copies from and to the host's memory; zero rates if the device's memory is the host's.
  [[nodiscard]] const LinkRates& to_device() const { return to_device_; }
  [[nodiscard]] const LinkRates& from_device() const { return from_device_; }
  // Copies directly from another device that links to its peers.
  [[nodiscard]] const LinkRates& from_peers() const { return from_peers_; }
  // Copies of weights for the duration of a step.
  [[nodiscard]] const LinkRates& weights_to_device() const { return weights_to_device_; }
  // Returns whether the host's memory is pinned for these, so that they were measured apart.
  [[nodiscard]] bool pins_memory() const { return pins_memory_; }
  // The share of its rate at which the processor reads memory meanwhile, and that at which they then travel.
  [[nodiscard]] double reads_beside_weights() const { return reads_beside_weights_; }
  [[nodiscard]] double weights_beside_reads() const { return weights_beside_reads_; }
  // Returns whether copies in one direction wait for those in the other.
  [[nodiscard]] bool one_way_at_a_time() const { return one_way_at_a_time_; }
  // Returns whether the device was measured, or its priors are as good as measurements.
  [[nodiscard]] bool is_measured() const { return is_measured_; }
  // Returns whether the device must be measured again: its profile has numbers that cannot be true, runs have
  // contradicted it, or it was not confirmed for long. `now_s`: unix_seconds().
  [[nodiscard]] bool is_due(double now_s) const;
  [[nodiscard]] bool is_doubted() const { return is_doubted_; }
  void doubt() { is_doubted_ = true; }
  // The records that stand out and were measured only once.
  [[nodiscard]] std::span<const Outlier> unconfirmed() const { return unconfirmed_; }
  // Returns whether predictions of a shape of this kind may rest on the outlier.
  [[nodiscard]] bool may_rest_on(const Outlier& outlier, std::string_view kind, const Cost& cost) const;
  // Takes the rest of these records at their word.
  void trust_outliers() { unconfirmed_.clear(); }
  // Predicts copies as if links were not measured.
  void forget_links();
  [[nodiscard]] bool has_profile() const { return has_profile_; }
  // DeviceProfile::checked_s as it was read; 0 without a profile.
  [[nodiscard]] double checked_s() const { return checked_s_; }
  // Sets the factor by which every predicted time is multiplied, as observed in runs.
  void correct(double factor) { correction_ = factor; }
  [[nodiscard]] double correction() const { return correction_; }

 private:
  void use(const DeviceInfo& device, const UsableProfile& measured);
  [[nodiscard]] Prediction alone(const OpCall& call, std::optional<Arithmetic> arithmetic) const;
  [[nodiscard]] std::optional<Prediction> from_nearest(const OpCall& call, const Cost& cost) const;
  [[nodiscard]] std::optional<Prediction> from_other_dtypes(const OpCall& call, const Cost& cost,
                                                            std::optional<Arithmetic> arithmetic) const;

  PriorRates prior_;
  LinkRates prior_link_;  // no rate: the device's memory is the host's
  double launch_us_;
  double wake_us_ = 0;
  LinkRates to_device_;
  LinkRates from_device_;
  LinkRates from_peers_;
  LinkRates weights_to_device_;
  bool pins_memory_ = false;
  double reads_beside_weights_ = 1;
  double weights_beside_reads_ = 1;
  bool one_way_at_a_time_ = false;
  bool is_measured_;
  bool has_profile_ = false;
  bool is_doubted_ = false;
  double checked_s_ = 0;
  double few_tokens_ratio_ = 1;
  double many_tokens_ratio_ = 1;
  double correction_ = 1;
  std::map<std::string, std::string, std::less<>> refused_;
  std::map<std::string, TimeCurve, std::less<>> curves_;  // by kind (kind_of())
  std::vector<Outlier> unconfirmed_;
};

// Predicts a typical language-model workload, to compare devices before a model is known: the matrix products of
// reading a prompt of 512 tokens and generating 128.
[[nodiscard]] double typical_us(const DeviceCost& cost);

// Returns the costs of each device by its priors alone.
[[nodiscard]] std::vector<DeviceCost> prior_costs(std::span<Device* const> devices);

}  // namespace shunt
