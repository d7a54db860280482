#include "run/measure/record_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "plan/costs/cost.h"

namespace shunt {
namespace {

// A record is wrong if it is off by this factor; a start-up time also has to be off by this many microseconds.
constexpr double kWrong = 2;
constexpr double kWrongStartUs = 0.5;
// Messages name at most so many wrong records.
constexpr std::size_t kMostNamed = 3;

bool is_off(double was, double now) { return was > kWrong * now || now > kWrong * was; }

bool is_start_off(double was_us, double now_us) {
  return is_off(was_us, now_us) && std::abs(was_us - now_us) > kWrongStartUs;
}

// Whether start-up times of a device's records are wrong. An op's is so short that each part of it counts.
bool is_wrong_start(const StartRecord& start, const DeviceProfile& was, const DeviceProfile& now) {
  return start.us == &DeviceProfile::op_us ? is_off(was.op_us, now.op_us) : is_start_off(was.*start.us, now.*start.us);
}

bool is_link_off(const LinkRates& was, const LinkRates& now) {
  return std::ranges::any_of(kComparedBytes,
                             [&](std::uint64_t bytes) { return is_off(was.copy_us(bytes), now.copy_us(bytes)); });
}

bool has_shape(std::span<const MeasuredOp> points, const Cost& cost) {
  return std::ranges::any_of(points, [&](const MeasuredOp& point) { return is_same_shape(point.cost, cost); });
}

void add_wrong(std::vector<std::string>& wrong, std::string_view what, double was, double now) {
  const bool is_slow = was > now;
  const double times = is_slow ? was / now : now / was;
  wrong.push_back(fmt::format("{} was recorded {:.0f} times too {}", what, times, is_slow ? "slow" : "fast"));
}

// The record of a kind that was replaced and was off most.
void add_wrong_op(std::vector<std::string>& wrong, const std::string& kind, const DeviceProfile& before,
                  std::span<const MeasuredOp> now) {
  const auto was = before.ops.find(kind);
  if (was == before.ops.end() || was->second.empty()) return;
  const TimeCurve curve(was->second, before.op_us);
  double was_us = 1;
  double now_us = 1;
  for (const MeasuredOp& point : now) {
    if (std::ranges::any_of(was->second, [&](const MeasuredOp& old) {
          return is_same_shape(old.cost, point.cost) && old.us == point.us;
        }))
      continue;
    const double us = curve.predict(point.cost).us;
    if (std::abs(std::log(us / point.us)) > std::abs(std::log(was_us / now_us))) {
      was_us = us;
      now_us = point.us;
    }
  }
  if (is_off(was_us, now_us)) add_wrong(wrong, kind, was_us, now_us);
}

}  // namespace

RecordCheck::RecordCheck(DeviceProfile before, const DeviceInfo& device)
    : before_(std::move(before)), outliers_(unconfirmed_outliers(before_, device)) {}

bool RecordCheck::has_outliers(std::string_view kind) const {
  return std::ranges::any_of(outliers_, [&](const Outlier& outlier) { return outlier.what == kind; });
}

bool RecordCheck::agrees(const DeviceProfile& profile, std::string_view kind, const MeasuredOp& now) {
  return !is_off(TimeCurve(profile.ops.find(kind)->second, profile.op_us).predict(now.cost).us, now.us);
}

void RecordCheck::confirm_all(DeviceProfile& profile, std::string_view what) const {
  for (const Outlier& outlier : outliers_)
    if (outlier.what == what) confirm(profile, outlier);
}

void RecordCheck::confirm_op(DeviceProfile& profile, const std::string& kind, const MeasuredOp& now) {
  std::vector<MeasuredOp>& points = profile.ops[kind];
  if (!has_shape(points, now.cost)) {
    if (has_outliers(kind)) points.push_back(now);
    return;
  }
  for (const Outlier& outlier : outliers_)
    if (outlier.what == kind && is_same_shape(outlier.cost, now.cost)) confirm(profile, outlier);
}

void RecordCheck::replace_op(DeviceProfile& profile, const std::string& kind, const MeasuredOp& now) {
  std::vector<MeasuredOp>& points = profile.ops[kind];
  const auto is_outlier = [&](const MeasuredOp& point) {
    return std::ranges::any_of(outliers_, [&](const Outlier& outlier) {
      return outlier.what == kind && is_same_shape(outlier.cost, point.cost);
    });
  };
  if (replaced_.insert(kind).second) {
    std::erase_if(points, is_outlier);
    if (!points.empty() && !agrees(profile, kind, now)) points.clear();
  }
  std::erase_if(points, [&](const MeasuredOp& point) { return is_same_shape(point.cost, now.cost); });
  points.push_back(now);
}

void RecordCheck::compare_starts(DeviceProfile& profile, bool are_measured) const {
  const auto is_wrong = [&](const StartRecord& start) { return is_wrong_start(start, before_, profile); };
  if (!are_measured || std::ranges::any_of(kStartRecords, is_wrong)) return;
  for (const StartRecord& start : kStartRecords) {
    profile.*start.us = before_.*start.us;
    confirm_all(profile, start.name);
  }
}

void RecordCheck::compare_links(DeviceProfile& profile) const {
  for (const LinkRecord& link : kLinkRecords) {
    const LinkRates& was = before_.*link.rates;
    LinkRates& now = profile.*link.rates;
    const bool is_measured = now.bytes_per_s > 0;
    if (is_measured && (was.bytes_per_s == 0 || is_link_off(was, now))) continue;
    now = was;
    if (is_measured) confirm_all(profile, link.name);
  }
  if (before_.weights.bytes_per_s > 0) {
    profile.reads_beside_weights = before_.reads_beside_weights;
    profile.weights_beside_reads = before_.weights_beside_reads;
  }
}

std::string wrong_records(const DeviceProfile& before, const DeviceProfile& now) {
  std::vector<std::string> wrong;
  for (const StartRecord& start : kStartRecords)
    if (is_start_off(before.*start.us, now.*start.us))
      add_wrong(wrong, start.name, std::max(before.*start.us, kWrongStartUs), std::max(now.*start.us, kWrongStartUs));
  for (const LinkRecord& link : kLinkRecords) {
    const LinkRates& was = before.*link.rates;
    const LinkRates& is = now.*link.rates;
    if (was.bytes_per_s == 0 || is.bytes_per_s == 0 || !is_link_off(was, is)) continue;
    const auto far = std::ranges::max_element(kComparedBytes, {}, [&](std::uint64_t bytes) {
      return std::abs(std::log(was.copy_us(bytes) / is.copy_us(bytes)));
    });
    add_wrong(wrong, link.name, was.copy_us(*far), is.copy_us(*far));
  }
  for (const auto& [kind, points] : now.ops) add_wrong_op(wrong, kind, before, points);
  if (wrong.size() <= kMostNamed) return fmt::to_string(fmt::join(wrong, ", "));
  const std::size_t more = wrong.size() - kMostNamed;
  wrong.resize(kMostNamed);
  return fmt::format("{}, and {} more", fmt::join(wrong, ", "), more);
}

}  // namespace shunt
