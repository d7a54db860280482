#include "plan/costs/profile_limits.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/costs/outliers.h"

namespace shunt {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// The work of a core in one cycle: two products of the widest vectors of 8-bit integers, and two loads and a store of
// them. The clock is at least that of any current processor, because some do not report theirs.
constexpr double kCoreFlopsPerCycle = 256;
constexpr double kCoreBytesPerCycle = 512;
constexpr double kCoreHz = 6e9;
// The same for a GPU's multiprocessor: matrix units on 8-bit numbers with sparsity, and shared memory.
constexpr double kMultiprocessorFlopsPerCycle = 16384;
constexpr double kMultiprocessorBytesPerCycle = 1024;
constexpr double kMultiprocessorHz = 3e9;

// A record may exceed the best of the others by this factor, once there are enough: caches exceed memory by less.
constexpr double kAboveOthers = 64;
constexpr std::size_t kEnoughOthers = 8;
// The most operations per byte that processors balance. A few records of compute-heavy ops say little about their
// bytes.
constexpr double kFlopsPerByte = 1024;
// A record may exceed the device's prior by this factor.
constexpr double kAbovePrior = 1e4;

constexpr double kMostStartUs = 1e6;  // of a launch, an op, a wake-up and a link
constexpr double kMostLinkBytesPerS = 2e12;
constexpr double kMostRatio = 8;

// The two greatest values, so that each can be compared with the others.
class Greatest {
 public:
  void add(double value) {
    second_ = std::max(second_, std::min(value, first_));
    first_ = std::max(first_, value);
  }
  [[nodiscard]] double without(double value) const { return value == first_ ? second_ : first_; }

 private:
  double first_ = 0;
  double second_ = 0;
};

ComputeRates limits_of(const DeviceInfo& device) {
  if (device.compute_units == 0) return {.flops_per_s = kUnlimited, .bytes_per_s = kUnlimited};
  const bool is_cpu = device.type == DeviceType::cpu;
  const double cycles_per_s =
      device.compute_units * std::max(is_cpu ? kCoreHz : kMultiprocessorHz, device.clock_mhz * 1e6);
  return {.flops_per_s = cycles_per_s * (is_cpu ? kCoreFlopsPerCycle : kMultiprocessorFlopsPerCycle),
          .bytes_per_s = cycles_per_s * (is_cpu ? kCoreBytesPerCycle : kMultiprocessorBytesPerCycle)};
}

// The limits on the records of one device.
class RecordLimits {
 public:
  RecordLimits(const DeviceInfo& device, const DeviceProfile& profile)
      : processors_(limits_of(device)), prior_(device.prior), op_us_(profile.op_us) {
    for (const auto& [kind, points] : profile.ops)
      for (const MeasuredOp& point : points) {
        if (!is_sound(point)) continue;
        const ComputeRates rates = rates_of(point, op_us_);
        flops_.add(rates.flops_per_s);
        bytes_.add(rates.bytes_per_s);
        ++count_;
      }
  }

  [[nodiscard]] bool allows(const MeasuredOp& point) const {
    if (!is_sound(point)) return false;
    const ComputeRates rates = rates_of(point, op_us_);
    const ComputeRates most = most_beside(rates);
    return rates.bytes_per_s <= std::min(processors_.bytes_per_s, most.bytes_per_s) &&
           rates.flops_per_s <= std::min(processors_.flops_per_s, most.flops_per_s);
  }

 private:
  // Returns the most that the other records leave room for, or the prior if there are few.
  [[nodiscard]] ComputeRates most_beside(const ComputeRates& rates) const {
    const auto above_prior = [](double prior) { return prior > 0 ? kAbovePrior * prior : kUnlimited; };
    if (count_ <= kEnoughOthers)
      return {.flops_per_s = above_prior(prior_.flops_per_s), .bytes_per_s = above_prior(prior_.bytes_per_s)};
    const double bytes_per_s = bytes_.without(rates.bytes_per_s);
    return {.flops_per_s = std::max(kAboveOthers * flops_.without(rates.flops_per_s), kFlopsPerByte * bytes_per_s),
            .bytes_per_s = kAboveOthers * bytes_per_s};
  }

  static bool is_sound(const MeasuredOp& point) {
    const auto is_number = [](double value) { return std::isfinite(value) && value >= 0; };
    return is_number(point.us) && point.us > 0 && is_number(point.spread) && is_number(point.cost.flops) &&
           is_number(point.cost.bytes_read) && is_number(point.cost.bytes_written);
  }

  ComputeRates processors_;
  const PriorRates& prior_;
  double op_us_;
  Greatest flops_;
  Greatest bytes_;
  std::size_t count_ = 0;
};

bool is_start(double us) { return us >= 0 && us <= kMostStartUs; }

std::size_t keep_possible_starts(DeviceProfile& profile) {
  const auto is_possible = [&](const StartRecord& start) { return is_start(profile.*start.us); };
  if (std::ranges::all_of(kStartRecords, is_possible)) return 0;
  for (const StartRecord& start : kStartRecords) profile.*start.us = 0;
  return 1;
}

std::size_t keep_possible_link(LinkRates& link) {
  const bool is_possible = is_start(link.us) && link.bytes_per_s >= 0 && link.bytes_per_s <= kMostLinkBytesPerS &&
                           std::isfinite(link.spread) && link.spread >= 0;
  if (!is_possible) link = {};
  return is_possible ? 0 : 1;
}

std::size_t keep_possible_ratio(double& ratio) {
  const bool is_possible = ratio >= 1 / kMostRatio && ratio <= kMostRatio;
  if (!is_possible) ratio = 1;
  return is_possible ? 0 : 1;
}

}  // namespace

ComputeRates rates_of(const MeasuredOp& point, double op_us) {
  const double us = std::max(point.us - op_us, point.us / 4);
  return {.flops_per_s = point.cost.flops / us * 1e6, .bytes_per_s = point.cost.bytes() / us * 1e6};
}

UsableProfile within_limits(DeviceProfile profile, const DeviceInfo& device) {
  std::size_t refused = keep_possible_starts(profile);
  for (const LinkRecord& link : kLinkRecords) refused += keep_possible_link(profile.*link.rates);
  for (double* const ratio : {&profile.few_tokens_ratio, &profile.many_tokens_ratio, &profile.reads_beside_weights,
                              &profile.weights_beside_reads})
    refused += keep_possible_ratio(*ratio);
  const RecordLimits limits(device, profile);
  for (auto& [kind, points] : profile.ops)
    refused += std::erase_if(points, [&](const MeasuredOp& point) { return !limits.allows(point); });
  std::erase_if(profile.ops, [](const auto& kind) { return kind.second.empty(); });
  return {.profile = std::move(profile), .refused = refused};
}

}  // namespace shunt
