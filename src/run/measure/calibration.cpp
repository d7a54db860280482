#include "run/measure/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <tuple>

#include "devices/cpu/limits.h"
#include "devices/discovery/registry.h"
#include "plan/costs/profile_limits.h"
#include "run/measure/device_rates.h"
#include "run/measure/link_bench.h"
#include "run/measure/op_bench.h"
#include "run/measure/record_check.h"
#include "run/measure/steady.h"
#include "run/verify/conformance.h"

namespace shunt {
namespace {

constexpr std::uint64_t kLinkSizes[] = {4U << 10U, 64U << 10U, 1U << 20U, 16U << 20U, 64U << 20U};
// Shares that are usual where the link and the processor together are faster than memory.
constexpr double kUsualReadsBesideWeights = 0.85;
constexpr double kUsualWeightsBesideReads = 0.9;
// If one use takes longer, larger shapes of its kind are not measured.
constexpr double kLongUseSeconds = 0.4;
constexpr double kLongUseSecondsQuick = 0.05;
// Before it is timed, a GPU that had nothing to do for so long works until it has not got faster by this factor for a
// while.
constexpr double kAsleepSeconds = 0.1;
constexpr double kWakingSeconds = 0.03;
constexpr double kFaster = 0.97;
constexpr double kMostWakingSeconds = 0.5;
// The assumed size of caches if time is short: filling as much memory as some really have takes a second.
constexpr std::uint64_t kBeyondCachesBriefly = std::uint64_t{192} << 20U;
// If time is short: runs of a program until its time is known, and how long they may take.
constexpr double kBriefRuns = 4;
constexpr double kBriefSeconds = 0.05;
// The least time of a run, see OpBench.
constexpr double kLeastRunSeconds = 2e-3;
// Limits of the memory that ops share, in addition to what caches hold.
constexpr std::uint64_t kMostReadBytes = std::uint64_t{256} << 20U;
constexpr std::uint64_t kMostWrittenBytes = std::uint64_t{128} << 20U;
// Times of one shape that differ by more were measured under different conditions.
constexpr double kDifferent = 1.1;
// The number of tries for a disturbed measurement: disturbed by other work on the machine, or by the launch measured
// with it.
constexpr int kMostTries = 3;
// A record this many times slower than the device's prior, or than its rates elsewhere, is timed all the same.
constexpr double kFarSlower = 8;
// If reading more than caches hold takes longer, ops read from the caches.
constexpr double kLongSweepSeconds = 0.2;

double longer_of(const Cost& cost, const Cost& than) {
  const double flops = than.flops > 0 ? cost.flops / than.flops : 1;
  const double bytes = cost.bytes() / than.bytes();
  return std::max(flops, bytes);
}

SteadyOptions steadiness_of(const Device& device, bool quick) {
  return {.relative = quick ? 0.05 : 0.015,
          .least = quick ? std::size_t{3} : std::size_t{5},
          .most = quick ? std::size_t{7} : std::size_t{25},
          .most_seconds = quick ? 0.1 : 0.5,
          .now_s = [&device] { return static_cast<double>(device.now_ns()) / 1e9; }};
}

// The way that ops are timed.
struct Timing {
  BenchMemory* memory = nullptr;
  std::uint64_t beyond_caches = cpu::beyond_cache_bytes();
  double most_waking_s = kMostWakingSeconds;
  double worked_s = -std::numeric_limits<double>::infinity();  // when the device last worked, by its clock
  SteadyOptions steadiness;

  // Seconds until uses of `use_s` each have read more than any cache holds; 0 if they read nothing.
  [[nodiscard]] double sweep_s(const BenchCase& use, double use_s) const {
    const double bytes = cost_of(BenchOperands(use).call()).bytes_read;
    return bytes > 0 ? use_s * std::max(static_cast<double>(beyond_caches) / bytes, 1.0) : 0;
  }
};

// Idle GPUs slow down. Lets one work until it has not got faster for a while.
Status wake(OpBench& bench, double most_seconds, const SteadyOptions& options) {
  double best = std::numeric_limits<double>::infinity();
  const double begin = options.now_s();
  double since = begin;  // no faster since
  for (double now = begin; now - since < kWakingSeconds && now - begin < most_seconds; now = options.now_s()) {
    SHUNT_TRY_ASSIGN(const double seconds, bench.measure());
    if (seconds < kFaster * best) since = now;
    best = std::min(best, seconds);
  }
  return {};
}

// Microseconds of a use, including its share of starting a program of `uses`.
struct Timed {
  Steady use;
  std::uint32_t uses = 1;

  // Returns nothing if the launch seems to take all of it. REQUIRES: `launch` is of one program, in microseconds.
  [[nodiscard]] std::optional<Steady> without_launch(Steady launch) const {
    launch.median /= uses;
    return without(use, launch);
  }
};

// Times a use that should take `expected_s`. Nothing if the device declines it or lacks the memory.
Result<std::optional<Timed>> time_of(const BenchCase& use, Device& device, double expected_s, const Timing& timing) {
  const bool is_slow = timing.sweep_s(use, expected_s) > kLongSweepSeconds;
  auto bench = OpBench::create(use, device, is_slow ? 0 : timing.beyond_caches, timing.memory);
  if (!bench && (bench.error().code == Code::unsupported || bench.error().code == Code::out_of_memory))
    return std::nullopt;
  if (!bench) return std::unexpected(std::move(bench).error());
  const auto us = [&]() -> Result<double> {
    SHUNT_TRY_ASSIGN(const double seconds, (*bench)->measure());
    return seconds * 1e6;
  };
  const bool can_sleep = !device.info().emulated && !device.info().is_host_cpu();
  if (can_sleep && timing.steadiness.now_s() - timing.worked_s > kAsleepSeconds)
    SHUNT_TRY(wake(**bench, timing.most_waking_s, timing.steadiness));
  SHUNT_TRY_ASSIGN(const Steady time, measure_steadily(us, timing.steadiness));
  return Timed{.use = time, .uses = (*bench)->uses()};
}

// Allocates what ops of usual sizes share. Null if the device lacks the memory; each op then allocates what it needs.
std::unique_ptr<BenchMemory> memory_for(Device& device, std::uint64_t read) {
  if (const auto available = device.memory_available(); available && *available / 4 < read + kMostWrittenBytes)
    return nullptr;
  auto memory = BenchMemory::create(device, read, kMostWrittenBytes);
  return memory ? std::move(*memory) : nullptr;
}

class Calibration {
 public:
  Calibration(Device& device, const CalibrationOptions& options, DeviceProfile before)
      : device_(device), options_(options) {
    for (const auto& [kind, points] : before.ops) recorded_.insert(kind);
    profile_ = within_limits(std::move(before), device.info()).profile;
  }

  Result<DeviceProfile> run(std::span<const BenchCase> cases) {
    count_ = cases.size() * kMostTries + 2;
    // Check everything before timing: a GPU that waits for the reference slows down.
    SHUNT_TRY(check_ops(cases));
    SHUNT_TRY(say("launches"));
    SHUNT_TRY(measure_launches());
    SHUNT_TRY(say("copies from and to the host"));
    if (device_.info().memory_pool != kHostPool) SHUNT_TRY(measure_links());
    const std::vector<BenchCase> ordered = in_order(cases);
    if (!options_.quick) SHUNT_TRY(choose_kernels(ordered));
    device_.choose_kernels(profile_.choices);
    memory_ = memory_for(device_, cpu::beyond_cache_bytes() + kMostReadBytes);
    // Visit each case several times: other memory addresses, or other conditions, may change times in ways that
    // repetitions do not show.
    const double begin_s = now_s();
    for (int visit = 0; visit < kMostTries; ++visit) {
      if (visit > 0 && now_s() - begin_s > options_.enough_seconds) break;
      for (const BenchCase& use : ordered) {
        SHUNT_TRY(say(kind_on(device_, BenchOperands(use).call())));
        SHUNT_TRY(measure(use));
      }
    }
    SHUNT_TRY(measure_impossible_again(ordered));
    return finished();
  }

  // Measures as many of `cases`, in order, as there is time for.
  Result<DeviceProfile> run_within(double seconds, std::span<const BenchCase> cases) {
    end_s_ = now_s() + seconds;
    count_ = cases.size() + 2;
    profile_.is_brief = true;
    SHUNT_TRY(say("launches"));
    SHUNT_TRY(measure_launches());
    SHUNT_TRY(say("copies from and to the host"));
    if (device_.info().memory_pool != kHostPool) SHUNT_TRY(measure_links());
    double most_read = 0;
    for (const BenchCase& use : cases) most_read = std::max(most_read, cost_of(BenchOperands(use).call()).bytes_read);
    memory_ =
        memory_for(device_, kBeyondCachesBriefly + std::min(static_cast<std::uint64_t>(most_read), kMostReadBytes));
    for (const BenchCase& use : cases) {
      SHUNT_TRY(say(kind_on(device_, BenchOperands(use).call())));
      SHUNT_TRY(measure_in_time(use));
    }
    return finished();
  }

  // Compares records with what launches, links and these ops take now, as far as time allows, and replaces wrong ones.
  Result<DeviceProfile> check_within(double seconds, std::span<const BenchCase> cases) {
    const bool was_brief = profile_.is_brief;
    check_.emplace(profile_, device_.info());
    // Outliers are checked first: they mislead most.
    std::vector<BenchCase> ordered(cases.begin(), cases.end());
    std::ranges::stable_partition(ordered, [&](const BenchCase& use) {
      return check_->has_outliers(kind_on(device_, BenchOperands(use).call()));
    });
    SHUNT_TRY(run_within(seconds, ordered));
    profile_.is_brief = was_brief;
    check_->compare_starts(profile_, launch_.count != 0);
    check_->compare_links(profile_);
    keep_used_confirmations(profile_, device_.info());
    return std::move(profile_);
  }

 private:
  [[nodiscard]] double now_s() const { return static_cast<double>(device_.now_ns()) / 1e9; }
  [[nodiscard]] double seconds_left() const { return end_s_ - now_s(); }

  [[nodiscard]] SteadyOptions steadiness() const { return steadiness_of(device_, options_.quick); }

  Status say(const std::string& what) {
    const bool goes_on = !options_.progress || options_.progress(what, done_, count_);
    ++done_;
    if (!goes_on) return fail(Code::interrupted, "interrupted");
    return {};
  }

  Status measure_launches() {
    const auto bench = LaunchBench::create(device_);
    if (!bench && bench.error().code == Code::unsupported) return {};
    if (!bench) return std::unexpected(bench.error());
    Samples ops;
    const auto measure = [&]() -> Result<double> {
      SHUNT_TRY_ASSIGN(const LaunchCost cost, (*bench)->measure());
      ops.add(std::max(cost.op_us, 0.0));
      return cost.program_us;
    };
    SHUNT_TRY_ASSIGN(const Steady program, measure_calmly(measure, steadiness(), kMostTries));
    SHUNT_TRY_ASSIGN(const Steady after_pause,
                     measure_calmly([&] { return (*bench)->measure_after_pause(); }, steadiness(), kMostTries));
    // A repeated measurement replaces one that was taken under worse conditions.
    if (launch_.count != 0 && launch_.median <= program.median) return {};
    profile_.op_us = ops.median();
    profile_.launch_us = std::max(program.median - profile_.op_us, 0.0);
    profile_.wake_us = std::max(after_pause.median - program.median, 0.0);
    launch_ = program;
    launch_.median = profile_.launch_us;
    return {};
  }

  Result<LinkRates> measure_link(LinkBench& bench, LinkBench::Direction direction, std::uint64_t most_bytes) {
    std::vector<CopyTime> times;
    for (const std::uint64_t bytes : kLinkSizes) {
      const double expected_us =
          times.empty() ? 0 : times.back().us * static_cast<double>(bytes) / static_cast<double>(times.back().bytes);
      if (bytes > most_bytes || kBriefRuns * expected_us > seconds_left() * 1e6) break;
      SHUNT_TRY_ASSIGN(const Steady time,
                       measure_steadily([&] { return bench.measure_us(direction, bytes); }, steadiness()));
      if (time.median > 0) times.push_back({bytes, time.median});
    }
    return times.size() < 2 ? LinkRates{} : fit_link(times);
  }

  Status measure_links() {
    using Direction = LinkBench::Direction;
    std::uint64_t most = options_.quick ? kLinkSizes[3] : kLinkSizes[4];
    const std::uint64_t available = device_.memory_available().value_or(4 * most);
    while (most * 4 > std::min(available, device_.info().largest_binding_bytes) && most > kLinkSizes[1]) most /= 4;
    // Weights come from memory, not from a cache, if there is time to pin so much.
    const std::uint64_t weights = profile_.is_brief ? most : cpu::beyond_cache_bytes();
    SHUNT_TRY_ASSIGN(const auto bench, LinkBench::create(device_, most, weights, options_.peer));
    SHUNT_TRY_ASSIGN(profile_.to_device, measure_link(*bench, Direction::to_device, most));
    SHUNT_TRY_ASSIGN(profile_.from_device, measure_link(*bench, Direction::from_device, most));
    if (bench->copies_from_peer()) {
      SHUNT_TRY_ASSIGN(profile_.from_peers, measure_link(*bench, Direction::from_peer, most));
    }
    if (bench->copies_weights()) {
      SHUNT_TRY_ASSIGN(profile_.weights, measure_link(*bench, Direction::weights, most));
      profile_.reads_beside_weights = kUsualReadsBesideWeights;
      profile_.weights_beside_reads = kUsualWeightsBesideReads;
      if (!profile_.is_brief) {
        SHUNT_TRY_ASSIGN(const LinkBench::SideBySide rates, bench->measure_side_by_side());
        profile_.reads_beside_weights = rates.reads / rates.reads_alone;
        profile_.weights_beside_reads = rates.weights / rates.weights_alone;
      }
    }
    SHUNT_TRY_ASSIGN(profile_.both_ways, measure_link(*bench, Direction::both, most));
    return {};
  }

  // Finds the fastest kernels. The memory that they share is free again before whole steps confirm them.
  Status choose_kernels(std::span<const BenchCase> cases) {
    const DeviceCost prior(device_.info(), &profile_);
    const auto has_several = [&](const BenchCase& use) {
      const BenchOperands operands(use);
      const OpCall call = operands.call();
      return device_.supports(std::span(&call, 1)) && !profile_.refused.contains(name_of(use.op)) &&
             !device_.kernels_for(call, weights_layout(device_, call)).empty() &&
             prior.compute(call).us < kLongUseSeconds * 1e6;
    };
    std::vector<const BenchCase*> chosen;
    for (const BenchCase& use : cases)
      if (has_several(use)) chosen.push_back(&use);
    if (chosen.empty()) return {};
    count_ += chosen.size();
    memory_ = memory_for(device_, cpu::beyond_cache_bytes() + kMostReadBytes);
    std::vector<KernelComparison> by_rule;
    std::vector<KernelComparison> others;
    for (const BenchCase* use : chosen) {
      SHUNT_TRY(say(fmt::format("the kernels of {}", name_of(use->op))));
      SHUNT_TRY_ASSIGN(auto found,
                       compare_kernels(*use, device_, cpu::beyond_cache_bytes(), memory_.get(), steadiness()));
      if (!found) continue;
      if (!found->is_by_rule()) {
        SHUNT_TRY_ASSIGN(const bool is_right, is_kernel_right(*use, found->choice.kernel));
        if (!is_right) found->choice.kernel = found->by_rule();
      }
      (found->is_by_rule() ? by_rule : others).push_back(std::move(*found));
    }
    memory_.reset();
    if (options_.confirm && !others.empty()) {
      SHUNT_TRY_ASSIGN(others, options_.confirm(std::move(others)));
    }
    add_choices(by_rule, profile_.choices);
    add_choices(others, profile_.choices);
    return {};
  }

  // Checks a kernel that the device would not take by itself.
  Result<bool> is_kernel_right(const BenchCase& use, const std::string& kernel) {
    const std::set<DType> dtypes = dtypes_of(BenchOperands(use).call());
    const auto [known, is_new] = right_kernels_.try_emplace({use.op, dtypes, kernel}, false);
    if (!is_new) return known->second;
    Device* const devices[] = {&device_};
    SHUNT_TRY_ASSIGN(
        const ConformanceReport report,
        check_conformance(
            devices,
            {.ops = {use.op}, .dtypes = {dtypes.begin(), dtypes.end()}, .sizes = {Sizes::awkward}, .kernel = kernel}));
    return known->second = report.failures.empty();
  }

  // Orders each kind by work, least first, so that it predicts the time of larger ones.
  static std::vector<BenchCase> in_order(std::span<const BenchCase> cases) {
    std::vector<BenchCase> ordered(cases.begin(), cases.end());
    std::ranges::stable_sort(ordered, {}, work_of);
    return ordered;
  }

  // Predicts the seconds of a use from the nearest smaller one of its kind.
  [[nodiscard]] double expected_s(const std::string& kind, const Cost& cost) const {
    const auto known = profile_.ops.find(kind);
    if (known == profile_.ops.end() || known->second.empty()) return 0;
    const MeasuredOp& last = known->second.back();
    return last.us / 1e6 * longer_of(cost, last.cost);
  }

  Status measure(const BenchCase& use) {
    const BenchOperands operands(use);
    const std::string kind = kind_on(device_, operands.call());
    const Cost cost = cost_of(operands.call());
    const double expected = expected_s(kind, cost);
    if (profile_.refused.contains(name_of(use.op)) ||
        expected > (options_.quick ? kLongUseSecondsQuick : kLongUseSeconds))
      return {};
    std::vector<Steady>& visited = visits_[{kind, {cost.flops, cost.bytes_read, cost.bytes_written}}];
    if (!needs_visit(visited)) return {};
    SHUNT_TRY_ASSIGN(
        const auto time,
        timed(use, expected, {.memory = memory_.get(), .worked_s = worked_s_, .steadiness = steadiness()}));
    if (!time) return {};
    worked_s_ = now_s();
    visited.push_back(*time);
    std::vector<MeasuredOp>& points = profile_.ops[kind];
    std::erase_if(points, [&](const MeasuredOp& point) { return is_same_shape(point.cost, cost); });
    points.push_back(of_visits(cost, visited));
    return {};
  }

  // Times a use that should take `expected_s`, without the launch. Nothing if it cannot be told from the launch, or the
  // device declines it.
  Result<std::optional<Steady>> timed(const BenchCase& use, double expected_s, const Timing& timing) {
    for (int tries = 0; tries < kMostTries; ++tries) {
      SHUNT_TRY_ASSIGN(const auto time, time_of(use, device_, expected_s, timing));
      if (!time) return std::nullopt;
      if (const auto alone = time->without_launch(launch_)) return alone;
      SHUNT_TRY(measure_launches());
    }
    return std::nullopt;
  }

  // On a busy machine a clock may show a time that no processor could achieve.
  Status measure_impossible_again(std::span<const BenchCase> cases) {
    UsableProfile usable = within_limits(profile_, device_.info());
    if (usable.refused == 0) return {};
    profile_ = std::move(usable.profile);
    for (const BenchCase& use : cases) {
      const BenchOperands operands(use);
      const std::string kind = kind_on(device_, operands.call());
      const Cost cost = cost_of(operands.call());
      const auto points = profile_.ops.find(kind);
      if (points != profile_.ops.end() &&
          std::ranges::any_of(points->second, [&](const MeasuredOp& point) { return is_same_shape(point.cost, cost); }))
        continue;
      visits_.erase({kind, {cost.flops, cost.bytes_read, cost.bytes_written}});
      SHUNT_TRY(measure(use));
    }
    return {};
  }

  // Keeps no numbers that cannot be true.
  DeviceProfile finished() {
    profile_ = within_limits(std::move(profile_), device_.info()).profile;
    profile_.checked_s = unix_seconds();
    confirm_visited();
    keep_used_confirmations(profile_, device_.info());
    return profile_;
  }

  // Visits at different times that agree confirm each other.
  void confirm_visited() {
    for (const Outlier& outlier : unconfirmed_outliers(profile_, device_.info())) {
      const auto visited =
          visits_.find({outlier.what, {outlier.cost.flops, outlier.cost.bytes_read, outlier.cost.bytes_written}});
      if (visited != visits_.end() && visited->second.size() > 1 && !differ(visited->second))
        confirm(profile_, outlier);
    }
  }

  Status measure_in_time(const BenchCase& use) {
    const BenchOperands operands(use);
    const OpCall call = operands.call();
    const double expected_s = most_expected_us(call) / 1e6;
    // Only the first measurement finds it asleep.
    const bool sleeps = !device_.info().is_host_cpu() && profile_.ops.empty();
    Timing timing{.memory = memory_.get(), .beyond_caches = kBeyondCachesBriefly};
    timing.most_waking_s = sleeps ? kBriefSeconds : 0;
    timing.steadiness = steadiness();
    timing.steadiness.most_seconds = kBriefSeconds;
    const double sweep_s = use.rows == 1 ? timing.sweep_s(use, expected_s) : 0;
    const double run_s = std::max({expected_s, sweep_s > kLongSweepSeconds ? 0 : sweep_s, kLeastRunSeconds});
    const double needed_s = kBriefRuns * run_s + timing.most_waking_s;
    if (needed_s > seconds_left()) return {};
    const std::string kind = kind_on(device_, call);
    if (!recorded_.contains(kind)) {
      SHUNT_TRY_ASSIGN(const bool is_right, is_right_in_time(call, needed_s));
      if (!is_right) return {};
    }
    SHUNT_TRY_ASSIGN(auto time, timed(use, expected_s, timing));
    if (!time) return {};
    MeasuredOp now = of_visits(cost_of(call), std::span(&*time, 1));
    if (!check_ || profile_.ops[kind].empty()) {
      profile_.ops[kind].push_back(now);
      return {};
    }
    if (!RecordCheck::agrees(profile_, kind, now)) {
      SHUNT_TRY_ASSIGN(time, timed(use, expected_s, timing));
      if (!time) return {};
      now = of_visits(cost_of(call), std::span(&*time, 1));
    }
    if (RecordCheck::agrees(profile_, kind, now))
      check_->confirm_op(profile_, kind, now);
    else
      check_->replace_op(profile_, kind, now);
    return {};
  }

  // A record to be checked may be far too slow, and would then never be timed.
  [[nodiscard]] double most_expected_us(const OpCall& call) const {
    const DeviceCost measured(device_.info(), &profile_);
    const Prediction expected = measured.compute(call, arithmetic_of(kind_on(device_, call)));
    if (!check_) return expected.us + expected.uncertainty_us;
    const double believed_us = DeviceCost(device_.info(), nullptr).compute(call).us;
    return std::min({expected.us, kFarSlower * believed_us, kFarSlower * best_us(cost_of(call))});
  }

  // Predicts by the best rates of all records.
  [[nodiscard]] double best_us(const Cost& cost) const {
    ComputeRates best;
    for (const auto& [kind, points] : profile_.ops)
      for (const MeasuredOp& point : points) {
        const ComputeRates rates = rates_of(point, profile_.op_us);
        best.flops_per_s = std::max(best.flops_per_s, rates.flops_per_s);
        best.bytes_per_s = std::max(best.bytes_per_s, rates.bytes_per_s);
      }
    if (best.bytes_per_s == 0) return std::numeric_limits<double>::infinity();
    const double bytes_us = cost.bytes() / best.bytes_per_s * 1e6;
    return profile_.op_us + std::max(bytes_us, best.flops_per_s > 0 ? cost.flops / best.flops_per_s * 1e6 : 0);
  }

  static std::set<DType> dtypes_of(const OpCall& call) {
    std::set<DType> dtypes{call.output->dtype};
    for (const Operand* input : call.inputs)
      if (input != nullptr && input->dtype != DType::I32) dtypes.insert(input->dtype);
    return dtypes;
  }

  // Returns whether the op was correct on such dtypes, and that was known with `needed_s` left.
  Result<bool> is_right_in_time(const OpCall& call, double needed_s) {
    const std::set<DType> dtypes = dtypes_of(call);
    const auto [found, is_new] = right_.try_emplace({call.op, dtypes}, false);
    if (!is_new) return found->second;
    const auto is_in_time = [&] { return seconds_left() > needed_s; };
    const ConformanceOptions options{.ops = {call.op},
                                     .dtypes = {dtypes.begin(), dtypes.end()},
                                     .sizes = {Sizes::awkward},
                                     .kernel = "",
                                     .progress = [&](Op, std::uint64_t, std::uint64_t) { return is_in_time(); }};
    SHUNT_TRY_ASSIGN(const bool is_right, is_right_on(options));
    return found->second = is_right && is_in_time();
  }

  // Visits twice if there is time, and once more if one visit was disturbed: a third one decides between two that
  // differ.
  [[nodiscard]] bool needs_visit(std::span<const Steady> visited) const {
    if (visited.size() < (options_.quick ? 1U : 2U)) return true;
    return differ(visited) || !std::ranges::all_of(visited, &Steady::is_known);
  }

  static bool differ(std::span<const Steady> visited) {
    const auto [least, most] = std::ranges::minmax(visited, {}, &Steady::median);
    return most.median > kDifferent * least.median;
  }

  static MeasuredOp of_visits(const Cost& cost, std::span<const Steady> visited) {
    Samples medians;
    double spread = 0;
    for (const Steady& visit : visited) {
      medians.add(visit.median);
      spread = std::max(spread, visit.spread);
    }
    const double middle = medians.median();
    const double apart = (medians.quantile(0.5) - medians.least()) / middle;
    return {.cost = cost, .us = middle, .spread = std::max(spread, apart)};
  }

  // Checks that the device computes each op as the reference does.
  Status check_ops(std::span<const BenchCase> cases) {
    std::set<std::pair<Op, std::set<DType>>> wanted;  // dtypes: none for all
    for (const BenchCase& use : cases) {
      profile_.refused.erase(std::string(name_of(use.op)));
      wanted.emplace(use.op, options_.checks_all ? std::set<DType>() : dtypes_of(BenchOperands(use).call()));
    }
    count_ += wanted.size();
    const std::vector<Sizes> sizes = options_.checks_all ? all_sizes() : std::vector{Sizes::awkward, Sizes::many};
    for (const auto& [op, dtypes] : wanted) {
      if (profile_.refused.contains(name_of(op))) continue;
      SHUNT_TRY(say(fmt::format("whether {} is right", name_of(op))));
      SHUNT_TRY_ASSIGN(const bool is_right, is_right_on({.ops = {op},
                                                         .dtypes = {dtypes.begin(), dtypes.end()},
                                                         .sizes = sizes,
                                                         .every_op = !options_.checks_all,
                                                         .kernel = ""}));
      // If there are no samples of exactly these dtypes, those of others must do.
      if (!is_right && !options_.checks_all && !profile_.refused.contains(name_of(op)))
        SHUNT_TRY(is_right_on({.ops = {op}, .sizes = {Sizes::awkward}, .kernel = ""}));
    }
    return {};
  }

  // Checks that the device computes these cases of an op as the reference does, and does not decline all of them.
  Result<bool> is_right_on(const ConformanceOptions& options) {
    Device* const devices[] = {&device_};
    SHUNT_TRY_ASSIGN(const ConformanceReport report, check_conformance(devices, options));
    if (!report.failures.empty())
      profile_.refused.emplace(name_of(options.ops[0]),
                               fmt::format("{}: {}", report.failures[0].call, report.failures[0].words));
    return report.failures.empty() &&
           std::ranges::any_of(report.tallies, [](const ConformanceTally& tally) { return tally.passed > 0; });
  }

  Device& device_;
  const CalibrationOptions& options_;
  DeviceProfile profile_;
  std::unique_ptr<BenchMemory> memory_;
  std::map<std::pair<std::string, std::array<double, 3>>, std::vector<Steady>> visits_;  // by kind and cost
  std::map<std::pair<Op, std::set<DType>>, bool> right_;
  std::map<std::tuple<Op, std::set<DType>, std::string>, bool> right_kernels_;
  Steady launch_;                                // of a program, in microseconds
  std::set<std::string, std::less<>> recorded_;  // kinds to check: they were correct when they were measured
  std::optional<RecordCheck> check_;             // of records from before
  double worked_s_ = -std::numeric_limits<double>::infinity();  // when the last timing ended
  double end_s_ = std::numeric_limits<double>::infinity();
  std::size_t done_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

Result<std::vector<CheckedOp>> check_predictions(Device& device, std::span<const BenchCase> cases,
                                                 const DeviceProfile& profile, const CalibrationOptions& options) {
  const DeviceCost cost(device.info(), &profile);
  const std::unique_ptr<BenchMemory> memory = memory_for(device, cpu::beyond_cache_bytes() + kMostReadBytes);
  std::vector<CheckedOp> checked;
  std::size_t done = 0;
  for (const BenchCase& use : cases) {
    const BenchOperands operands(use);
    const std::string kind = kind_on(device, operands.call());
    if (options.progress && !options.progress(kind, done++, cases.size()))
      return fail(Code::interrupted, "interrupted");
    const auto points = profile.ops.find(kind);
    const Prediction predicted = cost.compute(operands.call(), arithmetic_of(kind));
    if (points == profile.ops.end() || predicted.us > kLongUseSeconds * 1e6) continue;
    SHUNT_TRY_ASSIGN(const auto timed,
                     time_of(use, device, predicted.us / 1e6,
                             {.memory = memory.get(), .steadiness = steadiness_of(device, options.quick)}));
    const auto time = timed ? timed->without_launch({.median = profile.launch_us}) : std::nullopt;
    if (!time) continue;
    const Cost its_cost = cost_of(operands.call());
    const bool is_seen = std::ranges::any_of(
        points->second, [&](const MeasuredOp& point) { return is_same_shape(point.cost, its_cost); });
    checked.push_back({.kind = kind, .is_seen = is_seen, .cost = its_cost, .predicted = predicted, .us = time->median});
  }
  return checked;
}

Device* peer_of(const Device& device, std::span<Device* const> devices) {
  const auto peer = std::ranges::find_if(devices, [&](const Device* each) {
    return each->info().links_to_peers && each->info().memory_pool != device.info().memory_pool &&
           each->info().memory_pool != kHostPool && api_of(each->info().id) == api_of(device.info().id);
  });
  return device.info().links_to_peers && peer != devices.end() ? *peer : nullptr;
}

Result<DeviceProfile> calibrate(Device& device, std::span<const BenchCase> cases, DeviceProfile before,
                                const CalibrationOptions& options) {
  return Calibration(device, options, std::move(before)).run(cases);
}

Result<DeviceProfile> calibrate_briefly(Device& device, std::span<const Workload> work, double seconds,
                                        const CalibrationOptions& options) {
  CalibrationOptions quick = options;
  quick.quick = true;
  return Calibration(device, quick, unmeasured(device.info())).run_within(seconds, cases_by_time(work, device));
}

Result<DeviceProfile> check_briefly(Device& device, std::span<const Workload> work, double seconds,
                                    DeviceProfile before, const CalibrationOptions& options) {
  CalibrationOptions quick = options;
  quick.quick = true;
  return Calibration(device, quick, std::move(before)).check_within(seconds, cases_by_time(work, device));
}

}  // namespace shunt
