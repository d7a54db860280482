#include "run/measure/steady.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "run/measure/samples.h"

namespace shunt {
namespace {

constexpr int kMostChanges = 2;
// Measurements in each half needed to tell whether conditions have changed.
constexpr std::size_t kHalf = 5;
// The least difference between the halves then: in standard errors, and relatively.
constexpr double kFar = 5;
constexpr double kFarRelative = 0.1;

double median_of(std::span<const double> values) {
  Samples samples;
  for (const double value : values) samples.add(value);
  return samples.median();
}

// The standard error of a median of normally distributed values. Their deviation is estimated by the median distance
// from their median: Hampel, The influence curve and its role in robust estimation, 1974.
double error_of(std::span<const double> values, double median) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  return 1.2533 * 1.4826 * median_of(distances) / std::sqrt(static_cast<double>(values.size()));
}

Steady steady_of(std::span<const double> values, const SteadyOptions& options) {
  const double median = median_of(values);
  const double spread = median > 0 ? error_of(values, median) / median : 0;
  return {.median = median,
          .spread = spread,
          .count = values.size(),
          .is_known = values.size() >= options.least && spread <= options.relative};
}

bool has_changed(std::span<const double> values) {
  if (values.size() < 2 * kHalf) return false;
  const auto early = values.first(values.size() / 2);
  const auto late = values.subspan(values.size() / 2);
  const double before = median_of(early);
  const double after = median_of(late);
  const double difference = std::abs(after - before);
  return difference > kFar * std::hypot(error_of(early, before), error_of(late, after)) &&
         difference > kFarRelative * std::min(before, after);
}

}  // namespace

Result<Steady> measure_steadily(const std::function<Result<double>()>& measure, const SteadyOptions& options) {
  std::vector<double> values;
  int changes = 0;
  const double begin = options.now_s();
  for (;;) {
    SHUNT_TRY_ASSIGN(values.emplace_back(), measure());
    if (changes < kMostChanges && has_changed(values)) {
      values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
      ++changes;
    }
    const Steady steady = steady_of(values, options);
    if (steady.is_known || values.size() >= options.most || options.now_s() - begin >= options.most_seconds)
      return steady;
  }
}

Result<std::vector<Steady>> measure_in_turns(std::span<const std::function<Result<double>()>> measures,
                                             const SteadyOptions& options) {
  constexpr double kHopeless = 2;
  std::vector<std::vector<double>> values(measures.size());
  const double begin = options.now_s();
  const auto is_hopeless = [&](std::size_t number) { return values[number][0] > kHopeless * values[0][0]; };
  for (std::size_t turn = 0;; ++turn) {
    // Every second turn goes backwards, so that nothing always follows the same.
    for (std::size_t i = 0; i < measures.size(); ++i) {
      const std::size_t number = turn % 2 == 0 ? i : measures.size() - 1 - i;
      if (turn != 0 && is_hopeless(number)) continue;
      SHUNT_TRY_ASSIGN(values[number].emplace_back(), measures[number]());
    }
    std::vector<Steady> steady;
    bool is_known = true;
    for (std::size_t number = 0; number < measures.size(); ++number) {
      steady.push_back(steady_of(values[number], options));
      is_known = is_known && (steady.back().is_known || is_hopeless(number));
    }
    if (is_known || turn + 1 >= options.most || options.now_s() - begin >= options.most_seconds) return steady;
  }
}

bool is_clearly_less(const Steady& one, const Steady& other, double margin) {
  return one.median * (1 + one.spread) < other.median * (1 - other.spread - margin);
}

Result<Steady> measure_calmly(const std::function<Result<double>()>& measure, const SteadyOptions& options, int most) {
  SHUNT_TRY_ASSIGN(Steady best, measure_steadily(measure, options));
  for (int times = 1; times < most && !best.is_known; ++times) {
    SHUNT_TRY_ASSIGN(const Steady other, measure_steadily(measure, options));
    if (other.is_known || other.spread < best.spread) best = other;
  }
  return best;
}

std::optional<Steady> without(const Steady& whole, const Steady& part) {
  const double rest = whole.median - part.median;
  const double error = std::hypot(whole.median * whole.spread, part.median * part.spread);
  if (!(rest > error) || rest <= 0) return std::nullopt;
  return Steady{.median = rest, .spread = error / rest, .count = whole.count, .is_known = whole.is_known};
}

}  // namespace shunt
