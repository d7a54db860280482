#include "plan/costs/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace shunt {
namespace {

// The relative difference between an unmeasured device and its priors.
constexpr double kBelieved = 0.5;
// The same between kernels that compute products in different ways.
constexpr double kOtherArithmetic = 1;

// Expected deviation of times from the roofline, as a logarithm, before anything nearby is known.
constexpr double kDeviation = 0.7;
// In doublings of the work: shapes farther apart say little about each other.
constexpr double kReach = 4;
// Steps of at most this many tokens wait for weights more than they compute; most devices have separate kernels for
// them.
constexpr std::uint64_t kFewTokens = 8;
constexpr std::uint64_t kLongCopyBytes = std::uint64_t{16} << 20U;
// A measurement counts as confirmed for a week.
constexpr double kConfirmedSeconds = 7 * 86400;
// No measurement is more precise than this.
constexpr double kLeastSpread = 0.02;

std::array<double, 3> place_of(const Cost& cost) {
  return {std::log2(1 + cost.flops), std::log2(1 + cost.bytes_read), std::log2(1 + cost.bytes_written)};
}

// Returns how much two shapes say about each other, from 0 to 1: the Matern function of order 3/2.
double likeness(const std::array<double, 3>& one, const std::array<double, 3>& other) {
  const double distance = std::hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]) / kReach;
  const double scaled = std::sqrt(3.0) * distance;
  return (1 + scaled) * std::exp(-scaled);
}

// Solves `matrix` x = `values` by Cholesky decomposition. REQUIRES: the matrix is symmetric and positive definite.
std::vector<double> solve(std::vector<double> matrix, std::vector<double> values) {
  const std::size_t count = values.size();
  const auto at = [&](std::size_t row, std::size_t column) -> double& { return matrix[row * count + column]; };
  for (std::size_t column = 0; column < count; ++column) {
    for (std::size_t k = 0; k < column; ++k) at(column, column) -= at(column, k) * at(column, k);
    at(column, column) = std::sqrt(at(column, column));
    for (std::size_t row = column + 1; row < count; ++row) {
      for (std::size_t k = 0; k < column; ++k) at(row, column) -= at(row, k) * at(column, k);
      at(row, column) /= at(column, column);
    }
  }
  for (std::size_t row = 0; row < count; ++row) {
    for (std::size_t k = 0; k < row; ++k) values[row] -= at(row, k) * values[k];
    values[row] /= at(row, row);
  }
  for (std::size_t row = count; row-- > 0;) {
    for (std::size_t k = row + 1; k < count; ++k) values[row] -= at(k, row) * values[k];
    values[row] /= at(row, row);
  }
  return values;
}

// Returns the tokens of the model step that an op belongs to. A result has a row for each, and so does what is written
// to a cache. Nothing if rows are not tokens.
std::optional<std::uint32_t> tokens_of(const OpCall& call) {
  const Operand& rows = call.output->kind == TensorKind::state ? *call.inputs[1] : *call.output;
  if (rows.extent == Extent::fixed) return std::nullopt;
  return rows.shape[0];
}

LinkRates prior_link(const DeviceInfo& device) {
  return {.us = device.prior.link_us, .bytes_per_s = device.prior.link_bytes_per_s, .spread = device.prior.uncertainty};
}

// Derives priors for other kinds of ops from the measured ones.
ComputeRates middle_of(const std::map<std::string, TimeCurve, std::less<>>& curves) {
  std::vector<double> flops;
  std::vector<double> bytes;
  for (const auto& [kind, curve] : curves) {
    flops.push_back(curve.rates().flops_per_s);
    bytes.push_back(curve.rates().bytes_per_s);
  }
  const auto middle = static_cast<std::ptrdiff_t>(flops.size() / 2);
  std::ranges::nth_element(flops, flops.begin() + middle);
  std::ranges::nth_element(bytes, bytes.begin() + middle);
  return {.flops_per_s = flops[flops.size() / 2], .bytes_per_s = bytes[bytes.size() / 2]};
}

}  // namespace

TimeCurve::TimeCurve(std::span<const MeasuredOp> points, double op_us) : op_us_(op_us) {
  for (const MeasuredOp& point : points) {
    const ComputeRates rates = rates_of(point, op_us);
    rates_.flops_per_s = std::max(rates_.flops_per_s, rates.flops_per_s);
    rates_.bytes_per_s = std::max(rates_.bytes_per_s, rates.bytes_per_s);
  }
  const std::size_t count = points.size();
  std::vector<double> covariance(count * count);
  std::vector<double> deviations;
  for (std::size_t row = 0; row < count; ++row) {
    const double spread = std::max(points[row].spread, kLeastSpread);
    points_.push_back({.cost = points[row].cost, .at = place_of(points[row].cost), .strength = 0, .spread = spread});
    for (std::size_t column = 0; column <= row; ++column)
      covariance[row * count + column] = covariance[column * count + row] =
          kDeviation * kDeviation * likeness(points_[row].at, points_[column].at);
    covariance[row * count + row] += spread * spread;
    deviations.push_back(std::log(points[row].us / roofline_us(points[row].cost)));
  }
  const std::vector<double> strengths = solve(std::move(covariance), std::move(deviations));
  for (std::size_t point = 0; point < count; ++point) points_[point].strength = strengths[point];
}

double TimeCurve::roofline_us(const Cost& cost) const {
  return op_us_ + 1e6 * std::max(rates_.flops_per_s == 0 ? 0 : cost.flops / rates_.flops_per_s,
                                 rates_.bytes_per_s == 0 ? 0 : cost.bytes() / rates_.bytes_per_s);
}

bool TimeCurve::has(const Cost& cost) const {
  return std::ranges::any_of(points_, [&](const Point& point) { return is_same_shape(point.cost, cost); });
}

Prediction TimeCurve::predict(const Cost& cost) const {
  const std::array<double, 3> at = place_of(cost);
  double deviation = 0;
  double nearest = 0;
  double spread = kLeastSpread;
  for (const Point& point : points_) {
    const double like = likeness(at, point.at);
    deviation += kDeviation * kDeviation * like * point.strength;
    if (like <= nearest) continue;
    nearest = like;
    spread = point.spread;
  }
  const double us = roofline_us(cost) * std::exp(deviation);
  // The uncertainty that the nearest point alone leaves; other points only reduce it.
  const double open = kDeviation * std::sqrt(std::max(1 - nearest * nearest, 0.0));
  return {.us = us, .uncertainty_us = us * std::hypot(open, spread)};
}

DeviceCost::DeviceCost(const DeviceInfo& device, const DeviceProfile* measured)
    : prior_(device.prior), launch_us_(device.prior.launch_us), is_measured_(device.prior.uncertainty < kBelieved) {
  if (device.memory_pool != kHostPool) prior_link_ = prior_link(device);
  forget_links();
  if (measured != nullptr) use(device, within_limits(*measured, device));
}

void DeviceCost::use(const DeviceInfo& device, const UsableProfile& usable) {
  const DeviceProfile& measured = usable.profile;
  is_measured_ = is_measured_ || !measured.ops.empty();
  has_profile_ = true;
  checked_s_ = measured.checked_s;
  is_doubted_ = usable.refused != 0 || checked_s_ == 0;
  unconfirmed_ = unconfirmed_outliers(measured, device);
  // A device that declines to copy has not been measured in this.
  if (measured.launch_us + measured.op_us > 0) {
    launch_us_ = measured.launch_us;
    wake_us_ = measured.wake_us;
    prior_.op_us = measured.op_us;
  }
  if (device.memory_pool != kHostPool && measured.to_device.bytes_per_s > 0) to_device_ = measured.to_device;
  if (device.memory_pool != kHostPool && measured.from_device.bytes_per_s > 0) from_device_ = measured.from_device;
  from_peers_ = measured.from_peers.bytes_per_s > 0 ? measured.from_peers : to_device_;
  pins_memory_ = measured.weights.bytes_per_s > 0;
  weights_to_device_ = pins_memory_ ? measured.weights : to_device_;
  reads_beside_weights_ = std::min(measured.reads_beside_weights, 1.0);
  weights_beside_reads_ = std::min(measured.weights_beside_reads, 1.0);
  // If so, both at once take nearly as long as one after the other.
  const double apart_us = to_device_.copy_us(kLongCopyBytes) + from_device_.copy_us(kLongCopyBytes);
  one_way_at_a_time_ =
      measured.both_ways.bytes_per_s > 0 && measured.both_ways.copy_us(kLongCopyBytes) > 0.85 * apart_us;
  refused_ = measured.refused;
  few_tokens_ratio_ = measured.few_tokens_ratio;
  many_tokens_ratio_ = measured.many_tokens_ratio;
  for (const auto& [kind, points] : measured.ops)
    if (!points.empty()) curves_.emplace(kind, TimeCurve(points, prior_.op_us));
  if (curves_.empty()) return;
  const ComputeRates others = middle_of(curves_);
  if (others.flops_per_s > 0) prior_.flops_per_s = others.flops_per_s;
  if (others.bytes_per_s > 0) prior_.bytes_per_s = others.bytes_per_s;
  prior_.families.clear();
  prior_.uncertainty = kBelieved;
}

bool DeviceCost::is_due(double now_s) const {
  if (!has_profile_) return false;
  // If the clock was set back, the age is unknown.
  const double age_s = checked_s_ > now_s ? kConfirmedSeconds : now_s - checked_s_;
  return is_doubted_ || age_s >= kConfirmedSeconds;
}

bool DeviceCost::may_rest_on(const Outlier& outlier, std::string_view kind, const Cost& cost) const {
  if (outlier.of != Outlier::Of::op) return true;
  const auto curve = curves_.find(kind);
  if (curve == curves_.end()) return true;  // it is predicted from other kinds
  return outlier.what == kind && (is_same_shape(outlier.cost, cost) || !curve->second.has(cost));
}

void DeviceCost::forget_links() {
  to_device_ = from_device_ = from_peers_ = weights_to_device_ = prior_link_;
  pins_memory_ = false;
  one_way_at_a_time_ = false;
}

std::string_view DeviceCost::refusal(Op op) const {
  const auto found = refused_.find(name_of(op));
  return found == refused_.end() ? std::string_view() : found->second;
}

bool DeviceCost::rests_on_measurements(const Prediction& prediction) const {
  return is_measured_ && prediction.uncertainty_us <= kBelieved * prediction.us;
}

Prediction DeviceCost::compute(const OpCall& call, std::optional<Arithmetic> arithmetic) const {
  Prediction prediction = alone(call, arithmetic);
  double factor = correction_;
  if (const auto tokens = tokens_of(call)) factor *= *tokens <= kFewTokens ? few_tokens_ratio_ : many_tokens_ratio_;
  prediction.us *= factor;
  prediction.uncertainty_us *= factor;
  return prediction;
}

// Takes the kind with the nearest shape, of those that differ only in how products are computed.
std::optional<Prediction> DeviceCost::from_nearest(const OpCall& call, const Cost& cost) const {
  std::optional<Prediction> nearest;
  for (std::size_t index = 0; index < arithmetics().size(); ++index) {
    const auto curve = curves_.find(kind_of(call, static_cast<Arithmetic>(index)));
    if (curve == curves_.end()) continue;
    const Prediction prediction = curve->second.predict(cost);
    if (!nearest || prediction.uncertainty_us * nearest->us < nearest->uncertainty_us * prediction.us)
      nearest = prediction;
  }
  return nearest;
}

// Takes the first kind of the op with that arithmetic, or any if there is none.
std::optional<Prediction> DeviceCost::from_other_dtypes(const OpCall& call, const Cost& cost,
                                                        std::optional<Arithmetic> arithmetic) const {
  const std::string op = fmt::format("{} ", name_of(call.op));
  for (auto near = curves_.lower_bound(op); near != curves_.end() && near->first.starts_with(op); ++near)
    if (!arithmetic || arithmetic_of(near->first) == *arithmetic) return near->second.predict(cost);
  return std::nullopt;
}

Prediction DeviceCost::alone(const OpCall& call, std::optional<Arithmetic> arithmetic) const {
  const Cost cost = info_of(call.op).rule->cost(call);
  const auto uncertain = [](Prediction prediction, double least) -> Prediction {
    return {.us = prediction.us, .uncertainty_us = std::max(prediction.uncertainty_us, least * prediction.us)};
  };
  if (arithmetic)
    if (const auto curve = curves_.find(kind_of(call, *arithmetic)); curve != curves_.end())
      return curve->second.predict(cost);
  const auto nearest = from_nearest(call, cost);
  if (nearest && !arithmetic) return *nearest;
  // The same op says more than other ops do, and kernels of the same arithmetic more than those of the same dtypes.
  if (const auto other = from_other_dtypes(call, cost, arithmetic)) return uncertain(*other, kBelieved);
  if (nearest) return uncertain(*nearest, kOtherArithmetic);
  if (const auto other = from_other_dtypes(call, cost, {})) return uncertain(*other, kOtherArithmetic);
  const auto family = prior_.families.find(info_of(call.op).family);
  const ComputeRates rates = family != prior_.families.end()
                                 ? family->second
                                 : ComputeRates{.flops_per_s = prior_.flops_per_s, .bytes_per_s = prior_.bytes_per_s};
  const double us = prior_.op_us + 1e6 * std::max(cost.flops / rates.flops_per_s, cost.bytes() / rates.bytes_per_s);
  return {.us = us, .uncertainty_us = us * prior_.uncertainty};
}

double typical_us(const DeviceCost& cost) {
  constexpr std::uint32_t kWidth = 4096;
  constexpr double kProducts = 64;  // of a model of a billion parameters
  constexpr std::uint32_t kPrompt = 512;
  constexpr double kGenerated = 128;
  const Attributes attributes;
  const Operand weight = Operand::contiguous(DType::Q8_0, {kWidth, kWidth}, TensorKind::weight);
  const auto step_us = [&](std::uint32_t tokens) {
    const Operand x = Operand::contiguous(DType::F32, {tokens, kWidth}, TensorKind::value, Extent::tokens);
    const Operand* const inputs[] = {&x, &weight};
    return cost.launch_us() +
           kProducts * cost.compute({.op = Op::linear, .attributes = &attributes, .inputs = inputs, .output = &x}).us;
  };
  return step_us(kPrompt) + kGenerated * step_us(1);
}

std::vector<DeviceCost> prior_costs(std::span<Device* const> devices) {
  std::vector<DeviceCost> costs;
  for (const Device* device : devices) costs.emplace_back(device->info(), nullptr);
  return costs;
}

}  // namespace shunt
