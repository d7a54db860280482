#include "plan/costs/outliers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/fnv.h"
#include "devices/device.h"

namespace shunt {
namespace {

// A record this many times slower or faster than it should be stands out.
constexpr double kFar = 16;
// Differences below this many microseconds do not count in start-up times.
constexpr double kLeastStartUs = 0.5;
// A prior of an op without work is no less.
constexpr double kLeastOpUs = 1e-3;

std::string fingerprint_of(std::string_view what, std::span<const double> numbers) {
  return fmt::format("{:016x}", fnv1a(std::as_bytes(numbers), fnv1a(std::as_bytes(std::span(what)))));
}

// Keeps the factor that is farther from 1.
void keep_farther(double& factor, double other) {
  if (std::abs(std::log(other)) > std::abs(std::log(factor))) factor = other;
}

bool is_far(double factor) { return factor >= kFar || factor * kFar <= 1; }

void add_starts(const DeviceProfile& profile, const PriorRates& prior, std::vector<Outlier>& outliers) {
  const double expected_us[] = {prior.launch_us, prior.launch_us, prior.op_us};
  for (std::size_t index = 0; index < kStartRecords.size(); ++index) {
    const auto& [name, member] = kStartRecords[index];
    const double us = profile.*member;
    // Zero: it was not measured, or a pause makes no difference.
    if (us == 0 || expected_us[index] == 0) continue;
    const double factor = std::max(us, kLeastStartUs) / std::max(expected_us[index], kLeastStartUs);
    if (is_far(factor))
      outliers.push_back({.of = Outlier::Of::start,
                          .what = std::string(name),
                          .cost = {},
                          .times_slower = factor,
                          .fingerprint = fingerprint_of(name, std::span(&us, 1))});
  }
}

void add_links(const DeviceProfile& profile, const PriorRates& prior, std::vector<Outlier>& outliers) {
  const LinkRates expected{.us = prior.link_us, .bytes_per_s = prior.link_bytes_per_s};
  if (expected.bytes_per_s == 0) return;
  for (const auto& [name, member] : kLinkRecords) {
    const LinkRates& link = profile.*member;
    if (link.bytes_per_s == 0) continue;
    double factor = 1;
    for (const std::uint64_t bytes : kComparedBytes)
      keep_farther(factor, link.copy_us(bytes) / expected.copy_us(bytes));
    const double numbers[] = {link.us, link.bytes_per_s};
    // Links between devices may be much faster than those to the host.
    if (is_far(factor) && (factor > 1 || member != &DeviceProfile::from_peers))
      outliers.push_back({.of = Outlier::Of::link,
                          .what = std::string(name),
                          .cost = {},
                          .times_slower = factor,
                          .fingerprint = fingerprint_of(name, numbers)});
  }
}

// The times of ops, in logarithms of what the prior predicts.
class Deviations {
 public:
  Deviations(const DeviceProfile& profile, const PriorRates& prior) : prior_(prior) {
    for (const auto& [kind, points] : profile.ops)
      for (const MeasuredOp& point : points) all_.push_back(of(kind, point));
    std::ranges::sort(all_);
  }

  [[nodiscard]] double of(std::string_view kind, const MeasuredOp& point) const {
    const auto family = prior_.families.find(family_of(kind));
    const ComputeRates rates = family != prior_.families.end()
                                   ? family->second
                                   : ComputeRates{.flops_per_s = prior_.flops_per_s, .bytes_per_s = prior_.bytes_per_s};
    const double us =
        prior_.op_us + 1e6 * std::max(point.cost.flops / rates.flops_per_s, point.cost.bytes() / rates.bytes_per_s);
    return std::log(point.us / std::max(us, kLeastOpUs));
  }

  // Adds the records of a kind that stand out.
  void add_outliers(const std::string& kind, const std::vector<MeasuredOp>& points,
                    std::vector<Outlier>& outliers) const {
    std::vector<double> own;
    for (const MeasuredOp& point : points) own.push_back(of(kind, point));
    std::ranges::sort(own);
    for (const MeasuredOp& point : points) {
      const double deviation = of(kind, point);
      double factor = std::exp(deviation);
      for (const auto* records : {&std::as_const(own), &all_})
        if (const auto usual = median_without(deviation, *records)) keep_farther(factor, std::exp(deviation - *usual));
      const double numbers[] = {point.cost.flops, point.cost.bytes_read, point.cost.bytes_written, point.us};
      if (is_far(factor))
        outliers.push_back({.of = Outlier::Of::op,
                            .what = kind,
                            .cost = point.cost,
                            .times_slower = factor,
                            .fingerprint = fingerprint_of(kind, numbers)});
    }
  }

 private:
  // Returns the median of the others; of two in the middle the nearer one, for the other may be wrong itself. REQUIRES:
  // `sorted` has the value.
  static std::optional<double> median_without(double value, const std::vector<double>& sorted) {
    if (sorted.size() < 2) return std::nullopt;
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
    const auto other = [&](std::size_t index) { return sorted[index < at ? index : index + 1]; };
    const std::size_t count = sorted.size() - 1;
    const double low = other((count - 1) / 2);
    const double high = other(count / 2);
    return value - low < high - value ? low : high;
  }

  const PriorRates& prior_;
  std::vector<double> all_;  // sorted
};

bool is_confirmed(const DeviceProfile& profile, const Outlier& outlier) {
  return std::ranges::find(profile.confirmed, outlier.fingerprint) != profile.confirmed.end();
}

}  // namespace

std::vector<Outlier> outliers_of(const DeviceProfile& profile, const DeviceInfo& device) {
  std::vector<Outlier> outliers;
  add_starts(profile, device.prior, outliers);
  if (device.memory_pool != kHostPool) add_links(profile, device.prior, outliers);
  if (device.prior.flops_per_s <= 0 || device.prior.bytes_per_s <= 0) return outliers;
  const Deviations deviations(profile, device.prior);
  for (const auto& [kind, points] : profile.ops) deviations.add_outliers(kind, points, outliers);
  return outliers;
}

std::vector<Outlier> unconfirmed_outliers(const DeviceProfile& profile, const DeviceInfo& device) {
  std::vector<Outlier> outliers = outliers_of(profile, device);
  std::erase_if(outliers, [&](const Outlier& outlier) { return is_confirmed(profile, outlier); });
  return outliers;
}

void confirm(DeviceProfile& profile, const Outlier& outlier) {
  if (!is_confirmed(profile, outlier)) profile.confirmed.push_back(outlier.fingerprint);
}

void keep_used_confirmations(DeviceProfile& profile, const DeviceInfo& device) {
  const std::vector<Outlier> outliers = outliers_of(profile, device);
  std::erase_if(profile.confirmed, [&](const std::string& fingerprint) {
    return std::ranges::find(outliers, fingerprint, &Outlier::fingerprint) == outliers.end();
  });
}

}  // namespace shunt
