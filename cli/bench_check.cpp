// shunt bench check: checks this build against its speed gates, on this machine.
//
// All limits but four are ratios of two quantities that are measured in turn, so that a slow machine, or a slow moment
// of it, affects both alike.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/stopwatch.h"
#include "bench_options.h"
#include "bench_planning.h"
#include "command.h"
#include "devices/device.h"
#include "gates.h"
#include "interrupt.h"
#include "options.h"
#include "output.h"
#include "run/measure/op_bench.h"
#include "run/opened_devices.h"
#include "samples.h"
#include "trace/recorder.h"

namespace shunt::cli {
namespace {

struct BenchCheckOptions {
  std::vector<std::string> ops;
  BenchShape shape;
  std::uint32_t repetitions = 15;
  std::uint32_t threads = 0;
  bool json = false;
};

struct GateResult {
  Gate gate;
  Samples values;
  [[nodiscard]] bool passed() const { return gate.passes(values.median()); }
};

class Checker {
 public:
  Checker(const BenchCheckOptions& options, const Runtime& runtime, cpu::Limits& limits)
      : sizes_(sizes_of(options.shape)), runtime_(runtime), limits_(limits) {}

  Result<Round> round_of(const Gate& gate) {
    if (gate.measure == Measure::fork_join_us) return fork_join();
    if (gate.measure == Measure::trace_event_ns) return trace_event();
    if (gate.measure == Measure::plan_op_us) return planning();
    if (gate.measure == Measure::found_op_ns) return finding_plans();
    SHUNT_TRY_ASSIGN(const auto mine, bench(gate, gate.dtype, "cpu:simd"));
    switch (gate.measure) {
      case Measure::simd_speedup: {
        SHUNT_TRY_ASSIGN(const auto other, bench(gate, gate.dtype, "cpu:scalar"));
        return in_turn(other, mine);
      }
      case Measure::speed_over_f16: {
        SHUNT_TRY_ASSIGN(const auto other, bench(gate, DType::F16, "cpu:simd"));
        return in_turn(other, mine);
      }
      case Measure::speed_over_exact: {
        SHUNT_TRY_ASSIGN(const auto other, bench(gate, gate.dtype, "cpu:simd", Numerics::automatic));
        return in_turn(mine, other);
      }
      case Measure::share_of_read:
        return [this, mine]() -> Result<double> {
          const double limit = limits_.read_bytes_per_s();
          SHUNT_TRY_ASSIGN(const double seconds, mine->measure());
          return mine->bytes() / seconds / limit;
        };
      case Measure::share_of_peak:
      case Measure::fork_join_us:
      case Measure::trace_event_ns:
      case Measure::plan_op_us:
      case Measure::found_op_ns:
        break;
    }
    return [this, mine]() -> Result<double> {
      const double limit = limits_.flops_per_s(limits_.threads());
      SHUNT_TRY_ASSIGN(const double seconds, mine->measure());
      return mine->cost().flops / seconds / limit;
    };
  }

 private:
  using Bench = std::shared_ptr<OpBench>;

  Result<Bench> bench(const Gate& gate, DType dtype, std::string_view device,
                      Numerics numerics = Numerics::exact) const {
    SHUNT_TRY_ASSIGN(const std::vector<BenchCase> cases, bench_cases(*gate.op, sizes_));
    const std::uint32_t rows = gate.rows == GateRows::one ? 1 : sizes_.prompt;
    const auto found = std::ranges::find_if(
        cases, [&](const BenchCase& candidate) { return candidate.dtype == dtype && candidate.rows == rows; });
    if (found == cases.end())
      return fail(Code::unsupported, fmt::format("{} with {} has no case for this shape; choose another --shape",
                                                 name_of(*gate.op), name_of(dtype)));
    const auto place = std::ranges::find_if(opened(runtime_).handles(),
                                            [&](const Device* known) { return known->info().id == device; });
    if (place == opened(runtime_).handles().end())
      return fail(Code::unsupported, fmt::format("device {} is absent", device));
    BenchCase use = *found;
    use.numerics = numerics;
    SHUNT_TRY_ASSIGN(Bench made, OpBench::create(use, **place, cpu::beyond_cache_bytes()));
    return made;
  }

  static Round in_turn(Bench slow, Bench fast) {
    return [slow = std::move(slow), fast = std::move(fast)]() -> Result<double> {
      SHUNT_TRY_ASSIGN(const double slow_s, slow->measure());
      SHUNT_TRY_ASSIGN(const double fast_s, fast->measure());
      return slow_s / fast_s;
    };
  }

  static Result<Round> fork_join() {
    SHUNT_TRY_ASSIGN(const std::shared_ptr<cpu::Limits> pair, cpu::Limits::create(2));
    return [pair]() -> Result<double> { return pair->fork_join_us(); };
  }

  // Includes the two readings of the clock for each event.
  static Round trace_event() {
    auto recorder = std::make_shared<trace::Recorder>();
    recorder->set_enabled(true);
    return [recorder]() -> Result<double> {
      constexpr std::uint32_t kEvents = 1U << 16U;
      const Stopwatch watch;
      for (std::uint32_t step = 0; step < kEvents; ++step) {
        const std::uint64_t start_ns = trace::now_ns();
        recorder->record({.start_ns = start_ns, .duration_ns = trace::now_ns() - start_ns, .step = step});
      }
      return watch.seconds() * 1e9 / kEvents;
    };
  }

  OpSizes sizes_;
  const Runtime& runtime_;
  cpu::Limits& limits_;
};

std::string name_of(const Gate& gate) {
  if (!gate.op) return std::string(gate.measure_name);
  return fmt::format("{} {} {} {}", gate.measure_name, name_of(*gate.op), name_of(gate.dtype),
                     gate.rows == GateRows::one ? "one row" : "prompt");
}

std::vector<Gate> chosen_gates(const std::vector<std::string>& names) {
  std::vector<Gate> chosen = gates();
  std::vector<Op> ops;
  for (const std::string& name : names) {
    ops.push_back(or_refuse(op_from_name(name)));
    if (std::ranges::find(chosen, std::optional(ops.back()), &Gate::op) == chosen.end())
      refuse(fmt::format("no gate measures {}; leave OP out to check all gates", name));
  }
  const auto is_chosen = [&](const Gate& gate) { return gate.op && std::ranges::find(ops, *gate.op) != ops.end(); };
  if (!names.empty()) std::erase_if(chosen, [&](const Gate& gate) { return !is_chosen(gate); });
  return chosen;
}

Status repeat(const Round& round, std::uint32_t times, Samples& values) {
  const std::atomic<bool>& ending = catch_interrupts();
  for (std::uint32_t done = 0; done < times; ++done) {
    if (ending.load()) return fail(Code::interrupted, "interrupted");
    SHUNT_TRY_ASSIGN(const double value, round());
    values.add(value);
  }
  return {};
}

Result<std::vector<GateResult>> check_all(const BenchCheckOptions& options, std::span<const Gate> gates) {
  SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create({.threads = options.threads}));
  SHUNT_TRY_ASSIGN(const auto limits, cpu::Limits::create(options.threads));
  Checker checker(options, *runtime, *limits);
  ProgressLine line;
  std::vector<GateResult> results;
  for (const Gate& gate : gates) {
    line.show(fmt::format("gate {} of {}: {}", results.size() + 1, gates.size(), name_of(gate)));
    SHUNT_TRY_ASSIGN(const Round round, checker.round_of(gate));
    results.push_back({.gate = gate});
    SHUNT_TRY(repeat(round, options.repetitions, results.back().values));
    // A busy moment is more likely than a slow build: measures three times as often before a gate fails.
    if (!results.back().passed()) SHUNT_TRY(repeat(round, 2 * options.repetitions, results.back().values));
  }
  return results;
}

Json to_json(std::span<const GateResult> results, const BenchCheckOptions& options) {
  Json json = {{"shape", options.shape.name}, {"repetitions", options.repetitions}, {"gates", Json::array()}};
  for (const GateResult& result : results) {
    const Gate& gate = result.gate;
    Json entry = {{"measure", gate.measure_name}};
    if (gate.op)
      entry.update(Json{{"op", name_of(*gate.op)},
                        {"dtype", name_of(gate.dtype)},
                        {"rows", gate.rows == GateRows::one ? 1 : options.shape.prompt}});
    entry[gate.is_upper_bound() ? "at_most" : "at_least"] = gate.limit;
    entry["value"] = json_of(result.values);
    entry["passed"] = result.passed();
    json["gates"].push_back(std::move(entry));
  }
  json["passed"] = std::ranges::all_of(results, &GateResult::passed);
  return json;
}

std::string to_text(std::span<const GateResult> results) {
  std::string text = fmt::format("{:<42} {:>8}  {:>16}  limit\n", "gate", "median", "least .. most");
  for (const GateResult& result : results) {
    const Gate& gate = result.gate;
    text += fmt::format("{:<42} {:>8.2f}  {:>16}  {:<8} {:>4.2f}  {}\n", name_of(gate), result.values.median(),
                        fmt::format("{:.2f} .. {:.2f}", result.values.least(), result.values.most()),
                        gate.is_upper_bound() ? "at most" : "at least", gate.limit, result.passed() ? "ok" : "FAILED");
  }
  return text;
}

Status execute(const BenchCheckOptions& options) {
  const std::vector<Gate> gates = chosen_gates(options.ops);
  SHUNT_TRY_ASSIGN(const std::vector<GateResult> results, check_all(options, gates));
  SHUNT_TRY(options.json ? print_json(to_json(results, options)) : print(to_text(results)));
  const auto failed = std::ranges::count_if(results, [](const GateResult& result) { return !result.passed(); });
  if (failed == 0) return {};
  return fail(Code::internal,
              fmt::format("{} of {} speed gates failed; repeat the check on an idle machine", failed, results.size()));
}

}  // namespace

Action bench_check(CommandLine& line) {
  auto options = std::make_shared<BenchCheckOptions>();
  line.option("OP", options->ops, "Ops whose gates to check [all gates]");
  add_shape(line, options->shape);
  add_repetitions(line, options->repetitions);
  add_threads(line, options->threads);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
