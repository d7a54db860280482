#include "run/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <set>

#include "devices/cpu/limits.h"
#include "plan/units.h"
#include "run/conformance.h"
#include "run/device_rates.h"
#include "run/link_bench.h"
#include "run/op_bench.h"
#include "run/steady.h"

namespace shunt {
namespace {

constexpr std::uint64_t kLinkSizes[] = {4U << 10U, 64U << 10U, 1U << 20U, 16U << 20U, 64U << 20U};
// Where one use takes longer, larger shapes of its kind are not measured.
constexpr double kLongUseSeconds = 0.4;
constexpr double kLongUseSecondsQuick = 0.05;
// A GPU works before it is timed, until it has not been faster by so much for so long.
constexpr double kWakingSeconds = 0.03;
constexpr double kFaster = 0.97;
constexpr double kMostWakingSeconds = 0.5;
// What caches are taken to hold where there is little time: filling as much memory as some of them have takes a second.
constexpr std::uint64_t kBeyondCachesBriefly = std::uint64_t{192} << 20U;
// Where there is little time: runs of a program until its time is known, and how long they may take.
constexpr double kBriefRuns = 4;
constexpr double kBriefSeconds = 0.05;
// What a run takes at least, see OpBench.
constexpr double kLeastRunSeconds = 2e-3;
// Of the memory that ops share, beside what caches hold.
constexpr std::uint64_t kMostReadBytes = std::uint64_t{256} << 20U;
constexpr std::uint64_t kMostWrittenBytes = std::uint64_t{128} << 20U;
// Times of one shape that differ by more are not of one kind of moment.
constexpr double kDifferent = 1.1;
// Where reading more than caches hold takes longer, ops read what the caches have.
constexpr double kLongSweepSeconds = 0.2;

Cost cost_of(const OpCall& call) { return info_of(call.op).cost_rule(call); }

double work_of(const OpCase& use) {
  const Cost cost = cost_of(OpOperands(use).call());
  return cost.flops + cost.bytes_read + cost.bytes_written;
}

bool is_same(const Cost& one, const Cost& other) {
  return one.flops == other.flops && one.bytes_read == other.bytes_read && one.bytes_written == other.bytes_written;
}

double longer_of(const Cost& cost, const Cost& than) {
  const double flops = than.flops > 0 ? cost.flops / than.flops : 1;
  const double bytes = (cost.bytes_read + cost.bytes_written) / (than.bytes_read + than.bytes_written);
  return std::max(flops, bytes);
}

// Heads of 64, four of which share keys and values.
OpSizes sizes_of(std::uint32_t embedding, std::uint32_t feed_forward, std::uint32_t vocabulary, std::uint32_t context) {
  return {.embedding = embedding,
          .feed_forward = feed_forward,
          .heads = embedding / 64,
          .kv_heads = embedding / 64 / 4,
          .head_dim = 64,
          .vocabulary = vocabulary,
          .page_tokens = 32,
          .context = context};
}

// The dtypes of most models.
bool is_usual(DType dtype) {
  constexpr DType kUsual[] = {DType::F32, DType::F16, DType::Q8_0, DType::Q4_0, DType::Q4_K, DType::Q6_K};
  return std::ranges::find(kUsual, dtype) != std::end(kUsual);
}

// Ops that read matrices or a cache have other kernels for few tokens than for many, and for one.
bool has_kernels_for_few(const OpCase& use) {
  return std::ranges::any_of(use.inputs, [](const CaseInput& input) {
    return input.operand.shape.rank() > 1 &&
           (input.operand.kind == TensorKind::weight || input.operand.kind == TensorKind::state);
  });
}

SteadyOptions steadiness_of(const Device& device, bool quick) {
  return {.relative = quick ? 0.05 : 0.015,
          .least = quick ? std::size_t{3} : std::size_t{5},
          .most = quick ? std::size_t{7} : std::size_t{25},
          .most_seconds = quick ? 0.1 : 1.0,
          .now_s = [&device] { return static_cast<double>(device.now_ns()) / 1e9; }};
}

// How ops are timed.
struct Timing {
  BenchMemory* memory = nullptr;
  std::uint64_t beyond_caches = cpu::beyond_cache_bytes();
  double launch_us = 0;
  double most_waking_s = kMostWakingSeconds;
  SteadyOptions steadiness;

  // Seconds until a use that takes `use_s` has read what no cache holds; 0 where it reads nothing.
  [[nodiscard]] double sweep_s(const OpCase& use, double use_s) const {
    const double bytes = cost_of(OpOperands(use).call()).bytes_read;
    return bytes > 0 ? use_s * std::max(static_cast<double>(beyond_caches) / bytes, 1.0) : 0;
  }
};

// GPUs that had nothing to do have slowed down: lets one work until it has got no faster for a while.
Status wake(OpBench& bench, double most_seconds, const SteadyOptions& options) {
  double best = std::numeric_limits<double>::infinity();
  const double begin = options.now_s();
  double since = begin;  // it has been no faster
  for (double now = begin; now - since < kWakingSeconds && now - begin < most_seconds; now = options.now_s()) {
    SHUNT_TRY_ASSIGN(const double seconds, bench.measure());
    if (seconds < kFaster * best) since = now;
    best = std::min(best, seconds);
  }
  return {};
}

// Microseconds of a use that should take `expected_s`, without what starts a program; nothing where the device declines
// it or has not the memory.
Result<std::optional<Steady>> time_of(const OpCase& use, Device& device, double expected_s, const Timing& timing) {
  const bool is_slow = timing.sweep_s(use, expected_s) > kLongSweepSeconds;
  auto bench = OpBench::create(use, device, is_slow ? 0 : timing.beyond_caches, timing.memory);
  if (!bench && (bench.error().code == Code::unsupported || bench.error().code == Code::out_of_memory))
    return std::nullopt;
  if (!bench) return std::unexpected(std::move(bench).error());
  const auto us = [&]() -> Result<double> {
    SHUNT_TRY_ASSIGN(const double seconds, (*bench)->measure());
    return std::max(seconds * 1e6 - timing.launch_us / (*bench)->uses(), 1e-3);
  };
  if (!device.info().is_host_cpu()) SHUNT_TRY(wake(**bench, timing.most_waking_s, timing.steadiness));
  SHUNT_TRY_ASSIGN(const Steady time, measure_steadily(us, timing.steadiness));
  return time;
}

// Each different shape that a device would compute of these steps: kinds by the time that they should take altogether,
// and the least work of each first, which tells what the others take.
std::vector<OpCase> cases_by_time(std::span<const Workload> work, Device& device) {
  struct Kind {
    double us = 0;
    std::map<std::string, OpCase> cases;
  };
  Device* const devices[] = {&device};
  const std::vector<DeviceCost> costs = believed_costs(devices);
  Prices prices(devices, costs);
  std::map<std::string, Kind> by_name;
  for (const Workload& step : work)
    for (const Unit& unit :
         choose_units({.graph = step.graph, .devices = devices, .costs = costs, .prices = &prices})) {
      const UnitCall unit_call(*step.graph, unit);
      const OpCall call = unit_call.call();
      const Price& price = prices.of(call, 0);
      if (!price.support) continue;
      Kind& kind = by_name[kind_of(call)];
      kind.us += step.times * price.compute.us;
      kind.cases.emplace(to_string(call), case_of(call));
    }
  std::vector<const Kind*> kinds;
  for (const auto& [name, kind] : by_name) kinds.push_back(&kind);
  std::ranges::stable_sort(kinds, std::greater(), &Kind::us);
  std::vector<OpCase> cases;
  for (const Kind* kind : kinds) {
    const auto first = static_cast<std::ptrdiff_t>(cases.size());
    std::ranges::copy(kind->cases | std::views::values, std::back_inserter(cases));
    std::stable_sort(cases.begin() + first, cases.end(),
                     [](const OpCase& one, const OpCase& other) { return work_of(one) < work_of(other); });
  }
  return cases;
}

// What ops of usual sizes share; null where the device has not so much, and each takes what it needs.
std::unique_ptr<BenchMemory> memory_for(Device& device, std::uint64_t read) {
  if (const auto available = device.memory_available(); available && *available / 4 < read + kMostWrittenBytes)
    return nullptr;
  auto memory = BenchMemory::create(device, read, kMostWrittenBytes);
  return memory ? std::move(*memory) : nullptr;
}

class Calibration {
 public:
  Calibration(Device& device, const CalibrationOptions& options, DeviceProfile before)
      : device_(device), options_(options), profile_(std::move(before)) {}

  Result<DeviceProfile> run(std::span<const OpCase> cases) {
    count_ = cases.size() * static_cast<std::size_t>(visits()) + 2;
    // All before anything is timed: a GPU that waits for the reference slows down.
    SHUNT_TRY(check_ops(cases));
    SHUNT_TRY(say("launches"));
    SHUNT_TRY(measure_launches());
    SHUNT_TRY(say("copies from and to the host"));
    if (device_.info().memory_pool != kHostPool) SHUNT_TRY(measure_links());
    memory_ = memory_for(device_, cpu::beyond_cache_bytes() + kMostReadBytes);
    const std::vector<OpCase> ordered = in_order(cases);
    // Memory that lies otherwise, and another moment of the machine, may make a difference that repetitions do not
    // show.
    for (int visit = 0; visit < visits(); ++visit)
      for (const OpCase& use : ordered) {
        SHUNT_TRY(say(kind_of(OpOperands(use).call())));
        SHUNT_TRY(measure(use));
      }
    return std::move(profile_);
  }

  // As many of `cases`, in their order, as there is time for.
  Result<DeviceProfile> run_within(double seconds, std::span<const OpCase> cases) {
    end_s_ = now_s() + seconds;
    count_ = cases.size() + 2;
    profile_.is_brief = true;
    SHUNT_TRY(say("launches"));
    SHUNT_TRY(measure_launches());
    SHUNT_TRY(say("copies from and to the host"));
    if (device_.info().memory_pool != kHostPool) SHUNT_TRY(measure_links());
    double most_read = 0;
    for (const OpCase& use : cases) most_read = std::max(most_read, cost_of(OpOperands(use).call()).bytes_read);
    memory_ =
        memory_for(device_, kBeyondCachesBriefly + std::min(static_cast<std::uint64_t>(most_read), kMostReadBytes));
    for (const OpCase& use : cases) {
      SHUNT_TRY(say(kind_of(OpOperands(use).call())));
      SHUNT_TRY(measure_in_time(use));
    }
    return std::move(profile_);
  }

 private:
  [[nodiscard]] double now_s() const { return static_cast<double>(device_.now_ns()) / 1e9; }
  [[nodiscard]] double seconds_left() const { return end_s_ - now_s(); }

  [[nodiscard]] SteadyOptions steadiness() const { return steadiness_of(device_, options_.quick); }

  Status say(const std::string& what, std::size_t things = 1) {
    const bool goes_on = !options_.progress || options_.progress(what, done_, count_);
    done_ += things;
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
    SHUNT_TRY_ASSIGN(const Steady program, measure_steadily(measure, steadiness()));
    profile_.op_us = ops.median();
    profile_.launch_us = std::max(program.median - profile_.op_us, 0.0);
    SHUNT_TRY_ASSIGN(const Steady after_pause,
                     measure_steadily([&] { return (*bench)->measure_after_pause(); }, steadiness()));
    profile_.wake_us = std::max(after_pause.median - program.median, 0.0);
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
      times.push_back({bytes, std::max(time.median, 1e-3)});
    }
    return times.size() < 2 ? LinkRates{} : fit_link(times);
  }

  Status measure_links() {
    using Direction = LinkBench::Direction;
    std::uint64_t most = options_.quick ? kLinkSizes[3] : kLinkSizes[4];
    const std::uint64_t available = device_.memory_available().value_or(4 * most);
    while (most * 4 > std::min(available, device_.info().largest_binding_bytes) && most > kLinkSizes[1]) most /= 4;
    SHUNT_TRY_ASSIGN(const auto bench, LinkBench::create(device_, most));
    SHUNT_TRY_ASSIGN(profile_.to_device, measure_link(*bench, Direction::to_device, most));
    SHUNT_TRY_ASSIGN(profile_.from_device, measure_link(*bench, Direction::from_device, most));
    SHUNT_TRY_ASSIGN(profile_.both_ways, measure_link(*bench, Direction::both, most));
    return {};
  }

  // The least work of each kind first, so that the time of larger ones is known before.
  static std::vector<OpCase> in_order(std::span<const OpCase> cases) {
    std::vector<OpCase> ordered(cases.begin(), cases.end());
    std::ranges::stable_sort(ordered, {}, work_of);
    return ordered;
  }

  // Seconds that a use should take, from the nearest smaller one of its kind.
  [[nodiscard]] double expected_s(const std::string& kind, const Cost& cost) const {
    const auto known = profile_.ops.find(kind);
    if (known == profile_.ops.end() || known->second.empty()) return 0;
    const MeasuredOp& last = known->second.back();
    return last.us / 1e6 * longer_of(cost, last.cost);
  }

  Status measure(const OpCase& use) {
    const OpOperands operands(use);
    const std::string kind = kind_of(operands.call());
    const Cost cost = cost_of(operands.call());
    const double expected = expected_s(kind, cost);
    if (profile_.refused.contains(name_of(use.op)) ||
        expected > (options_.quick ? kLongUseSecondsQuick : kLongUseSeconds))
      return {};
    std::vector<Steady>& visited = visits_[{kind, {cost.flops, cost.bytes_read, cost.bytes_written}}];
    // A third one, where two differ, tells which of them is the rule.
    if (visited.size() > 1 && !differ(visited)) return {};
    SHUNT_TRY_ASSIGN(const auto time,
                     time_of(use, device_, expected,
                             {.memory = memory_.get(), .launch_us = profile_.launch_us, .steadiness = steadiness()}));
    if (!time) return {};
    visited.push_back(*time);
    std::vector<MeasuredOp>& points = profile_.ops[kind];
    std::erase_if(points, [&](const MeasuredOp& point) { return is_same(point.cost, cost); });
    points.push_back(of_visits(cost, visited));
    return {};
  }

  Status measure_in_time(const OpCase& use) {
    const OpOperands operands(use);
    const OpCall call = operands.call();
    const Prediction expected = DeviceCost(device_.info(), &profile_).compute(call);
    const double expected_s = (expected.us + expected.uncertainty_us) / 1e6;
    // It is awake from the first one on.
    const bool sleeps = !device_.info().is_host_cpu() && profile_.ops.empty();
    Timing timing{.memory = memory_.get(), .beyond_caches = kBeyondCachesBriefly};
    timing.launch_us = profile_.launch_us;
    timing.most_waking_s = sleeps ? kBriefSeconds : 0;
    timing.steadiness = steadiness();
    timing.steadiness.most_seconds = kBriefSeconds;
    const double sweep_s = use.rows == 1 ? timing.sweep_s(use, expected_s) : 0;
    const double run_s = std::max({expected_s, sweep_s > kLongSweepSeconds ? 0 : sweep_s, kLeastRunSeconds});
    const double needed_s = kBriefRuns * run_s + timing.most_waking_s;
    if (needed_s > seconds_left()) return {};
    SHUNT_TRY_ASSIGN(const bool is_right, is_right_in_time(call, needed_s));
    if (!is_right) return {};
    SHUNT_TRY_ASSIGN(const auto time, time_of(use, device_, expected_s, timing));
    if (time) profile_.ops[kind_of(call)].push_back(of_visits(cost_of(call), std::span(&*time, 1)));
    return {};
  }

  // Whether the op was right on such dtypes, known so early that `needed_s` are left.
  Result<bool> is_right_in_time(const OpCall& call, double needed_s) {
    std::set<DType> dtypes{call.output->dtype};
    for (const Operand* input : call.inputs)
      if (input != nullptr && input->dtype != DType::I32) dtypes.insert(input->dtype);
    const auto [found, is_new] = right_.try_emplace({call.op, dtypes}, false);
    if (!is_new) return found->second;
    const auto is_in_time = [&] { return seconds_left() > needed_s; };
    const ConformanceOptions options{.ops = {call.op},
                                     .dtypes = {dtypes.begin(), dtypes.end()},
                                     .sizes = false,
                                     .progress = [&](Op, std::uint64_t, std::uint64_t) { return is_in_time(); }};
    SHUNT_TRY_ASSIGN(const bool is_right, is_right_on(options));
    return found->second = is_right && is_in_time();
  }

  [[nodiscard]] int visits() const { return options_.quick ? 1 : 3; }

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

  // Whether the device computes each op as the reference does.
  Status check_ops(std::span<const OpCase> cases) {
    std::set<Op> wanted;
    for (const OpCase& use : cases) wanted.insert(use.op);
    for (const Op op : wanted) {
      SHUNT_TRY(say(fmt::format("whether {} is right", name_of(op)), 0));
      profile_.refused.erase(std::string(name_of(op)));
      SHUNT_TRY(is_right_on({.ops = {op}}));
    }
    return {};
  }

  // Whether the device computes these cases of an op as the reference does, and some of them at all.
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
  double end_s_ = std::numeric_limits<double>::infinity();
  std::size_t done_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<OpCase> calibration_cases(bool quick) {
  std::vector<OpCase> cases;
  std::set<std::pair<std::string, std::vector<double>>> seen;
  // From a small model to one of a thousand million parameters.
  const OpSizes models[] = {sizes_of(512, 1536, 32000, 512), sizes_of(1024, 4096, 32000, 512),
                            sizes_of(2048, 8192, 32000, 2048)};
  for (OpSizes sizes : models)
    for (const std::uint32_t prompt : kMeasuredTokens) {
      if (prompt == 1 || (quick && prompt != 4 && prompt != 128)) continue;
      const bool is_middle = sizes.embedding == models[1].embedding;
      sizes.prompt = prompt;
      for (std::size_t op = 0; op < ops().size(); ++op) {
        const auto uses = op_cases(static_cast<Op>(op), sizes);
        if (!uses) continue;  // sizes that do not fit the op
        for (const OpCase& use : *uses) {
          const OpOperands operands(use);
          const Cost cost = cost_of(operands.call());
          if (use.rows > 1 && use.rows < 16 && (is_middle || !has_kernels_for_few(use))) continue;
          if (!is_usual(use.dtype) && (quick || is_middle || prompt == 2 || prompt == 8 || prompt == 16)) continue;
          if (seen.emplace(kind_of(operands.call()), std::vector{cost.flops, cost.bytes_read, cost.bytes_written})
                  .second)
            cases.push_back(use);
        }
      }
    }
  return cases;
}

std::vector<OpCase> cases_of(const Graph& graph, Device& device) {
  Device* const devices[] = {&device};
  const std::vector<DeviceCost> costs = believed_costs(devices);
  Prices prices(devices, costs);
  std::vector<OpCase> cases;
  std::set<std::string> seen;
  for (const bool fuse : {true, false})
    for (const Unit& unit :
         choose_units({.graph = &graph, .devices = devices, .costs = costs, .prices = &prices, .fuse = fuse})) {
      const UnitCall unit_call(graph, unit);
      const OpCall call = unit_call.call();
      if (prices.of(call, 0).support && seen.insert(to_string(call)).second) cases.push_back(case_of(call));
    }
  return cases;
}

std::vector<OpCase> unseen_cases() {
  OpSizes between = sizes_of(1280, 3584, 24000, 1024);
  between.prompt = 200;
  std::vector<OpCase> cases;
  for (std::size_t op = 0; op < ops().size(); ++op)
    if (auto uses = op_cases(static_cast<Op>(op), between)) std::ranges::move(*uses, std::back_inserter(cases));
  return cases;
}

Result<std::vector<CheckedOp>> check_predictions(Device& device, std::span<const OpCase> cases,
                                                 const DeviceProfile& profile, const CalibrationOptions& options) {
  const DeviceCost cost(device.info(), &profile);
  const std::unique_ptr<BenchMemory> memory = memory_for(device, cpu::beyond_cache_bytes() + kMostReadBytes);
  std::vector<CheckedOp> checked;
  std::size_t done = 0;
  for (const OpCase& use : cases) {
    const OpOperands operands(use);
    const std::string kind = kind_of(operands.call());
    if (options.progress && !options.progress(kind, done++, cases.size()))
      return fail(Code::interrupted, "interrupted");
    const auto points = profile.ops.find(kind);
    const Prediction predicted = cost.compute(operands.call());
    if (points == profile.ops.end() || predicted.us > kLongUseSeconds * 1e6) continue;
    SHUNT_TRY_ASSIGN(const auto time, time_of(use, device, predicted.us / 1e6,
                                              {.memory = memory.get(),
                                               .launch_us = profile.launch_us,
                                               .steadiness = steadiness_of(device, options.quick)}));
    if (!time) continue;
    const Cost its_cost = cost_of(operands.call());
    const bool is_seen =
        std::ranges::any_of(points->second, [&](const MeasuredOp& point) { return is_same(point.cost, its_cost); });
    checked.push_back({.kind = kind, .is_seen = is_seen, .cost = its_cost, .predicted = predicted, .us = time->median});
  }
  return checked;
}

Result<DeviceProfile> calibrate(Device& device, std::span<const OpCase> cases, DeviceProfile before,
                                const CalibrationOptions& options) {
  return Calibration(device, options, std::move(before)).run(cases);
}

Result<DeviceProfile> calibrate_briefly(Device& device, std::span<const Workload> work, double seconds,
                                        const CalibrationOptions& options) {
  CalibrationOptions quick = options;
  quick.quick = true;
  return Calibration(device, quick, unmeasured(device.info())).run_within(seconds, cases_by_time(work, device));
}

}  // namespace shunt
