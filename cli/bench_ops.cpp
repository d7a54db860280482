// shunt bench ops: measures the speed of single ops, relative to the machine's limits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/stopwatch.h"
#include "bench_options.h"
#include "bench_rates.h"
#include "command.h"
#include "interrupt.h"
#include "ops/bench_layers.h"
#include "options.h"
#include "output.h"
#include "run/measure/op_bench.h"
#include "run/opened_devices.h"
#include "samples.h"

namespace shunt::cli {
namespace {

// An op is not measured again after this time.
constexpr double kMostSecondsPerOp = 2;

struct BenchOpsOptions {
  std::vector<std::string> ops;
  BenchShape shape;
  std::uint32_t repetitions = 7;
  Numerics numerics = Numerics::exact;
  RuntimeOptions runtime;
  bool curve = false;
  bool json = false;
};

struct Row {
  std::string device;
  std::string layer;  // of bench_layers(); empty: a case of every op
  BenchCase use;
  Cost cost;
  bool reads_memory = false;
  OpTimes times;
  std::string refusal;  // why the device cannot run it; nothing was measured then
};

struct OpsReport {
  std::string shape;
  std::uint32_t threads = 0;
  LimitTimes limits;
  std::vector<Row> rows;
};

Result<Row> measure(BenchCase use, Device& device, cpu::Limits& limits, const BenchOpsOptions& options,
                    LimitTimes& times) {
  const std::atomic<bool>& ending = catch_interrupts();
  use.numerics = options.numerics;
  Row row{.device = device.info().id, .use = use};
  auto bench = OpBench::create(std::move(use), device, cpu::beyond_cache_bytes());
  if (!bench && bench.error().code == Code::unsupported) {
    row.refusal = bench.error().message;
    return row;
  }
  if (!bench) return std::unexpected(std::move(bench).error());
  row.cost = (*bench)->cost();
  row.reads_memory = (*bench)->reads_memory();
  double spent = 0;
  for (std::uint32_t done = 0; done < options.repetitions && (done == 0 || spent < kMostSecondsPerOp); ++done) {
    if (ending.load()) return fail(Code::interrupted, "interrupted");
    const Stopwatch watch;
    SHUNT_TRY(measure_beside(limits, **bench, row.times, times));
    spent += watch.seconds();
  }
  return row;
}

// Returns the cases of an op with the names of their layers.
Result<std::vector<std::pair<std::string, BenchCase>>> named_cases(Op op, const OpSizes& sizes) {
  std::vector<std::pair<std::string, BenchCase>> named;
  SHUNT_TRY_ASSIGN(std::vector<BenchCase> cases, bench_cases(op, sizes));
  for (BenchCase& use : cases) named.emplace_back("", std::move(use));
  for (BenchLayer& layer : bench_layers(op)) named.emplace_back(layer.name, std::move(layer.use));
  return named;
}

Result<OpsReport> measure_all(const BenchOpsOptions& options, std::span<const Op> chosen,
                              std::span<Device* const> devices) {
  SHUNT_TRY_ASSIGN(const auto limits, cpu::Limits::create(options.runtime.threads));
  OpsReport report{.shape = options.shape.name, .threads = limits->threads()};
  ProgressLine line;
  for (const Op op : chosen) {
    SHUNT_TRY_ASSIGN(const auto cases, named_cases(op, sizes_of(options.shape)));
    for (const auto& [layer, use] : cases)
      for (Device* device : devices) {
        line.show(fmt::format("{}: {} {} with {} rows", device->info().id, name_of(op), name_of(use.dtype), use.rows));
        SHUNT_TRY_ASSIGN(Row row, measure(use, *device, *limits, options, report.limits));
        row.layer = layer;
        report.rows.push_back(std::move(row));
      }
  }
  return report;
}

Json to_json(const Row& row) {
  Json json = {
      {"op", name_of(row.use.op)}, {"device", row.device}, {"dtype", name_of(row.use.dtype)}, {"rows", row.use.rows}};
  if (!row.layer.empty()) json["layer"] = row.layer;
  if (!row.refusal.empty()) {
    json["unsupported"] = row.refusal;
    return json;
  }
  json.update({{"bytes", row.cost.bytes()},
               {"flops", row.cost.flops},
               {"reads", row.reads_memory ? "memory" : "reused"},
               {"repetitions", row.times.seconds.count()},
               {"seconds", json_of(row.times.seconds)},
               {"bytes_per_s", json_of(row.times.bytes_per_s)},
               {"flops_per_s", json_of(row.times.flops_per_s)}});
  if (!row.times.share_of_bandwidth.empty()) json["share_of_bandwidth"] = json_of(row.times.share_of_bandwidth);
  if (!row.times.share_of_peak.empty()) json["share_of_peak"] = json_of(row.times.share_of_peak);
  if (const Samples& rate = row.times.instructions_per_cycle; !rate.empty())
    json["instructions_per_cycle"] = json_of(rate);
  return json;
}

Json to_json(const OpsReport& report) {
  Json json = {{"shape", report.shape}, {"threads", report.threads}};
  if (const LimitTimes& limits = report.limits; !limits.read_bytes_per_s.empty())
    json.update({{"read_bytes_per_s", json_of(limits.read_bytes_per_s)},
                 {"peak_flops_per_s", json_of(limits.flops_per_s)},
                 {"peak_flops_per_s_one_thread", json_of(limits.flops_per_s_one_thread)},
                 {"fork_join_us", json_of(limits.fork_join_us)}});
  json["ops"] = Json::array();
  for (const Row& row : report.rows) json["ops"].push_back(to_json(row));
  return json;
}

std::string head_of(const OpsReport& report) {
  std::string text = fmt::format("sizes of {}; threads: {}; medians\n", report.shape, report.threads);
  const LimitTimes& limits = report.limits;
  if (limits.read_bytes_per_s.empty()) return text;
  text += fmt::format("memory read   {:9.1f} GB/s\n", limits.read_bytes_per_s.median() / 1e9);
  text += fmt::format("multiply-add  {:9.1f} GFLOP/s, {:.1f} with one thread\n", limits.flops_per_s.median() / 1e9,
                      limits.flops_per_s_one_thread.median() / 1e9);
  text += fmt::format("fork and join {:9.2f} us\n\n", limits.fork_join_us.median());
  return text;
}

std::string percent_of(const Samples& share) {
  return share.empty() ? "-  " : fmt::format("{:.0f} %", 100 * share.median());
}

// Returns whether the system counted instructions; the column is left out otherwise.
bool counts_instructions(const OpsReport& report) {
  return std::ranges::any_of(report.rows, [](const Row& row) { return !row.times.instructions_per_cycle.empty(); });
}

std::string line_of(const Row& row, bool has_rate) {
  const std::string start =
      fmt::format("{:<18} {:<5} {:>5}  {:<11}", row.layer.empty() ? name_of(row.use.op) : row.layer,
                  name_of(row.use.dtype), row.use.rows, row.device);
  if (!row.refusal.empty()) return fmt::format("{} unsupported: {}\n", start, row.refusal);
  const OpTimes& times = row.times;
  std::string rate;
  if (has_rate)
    rate = times.instructions_per_cycle.empty() ? fmt::format("{:>6}", "-  ")
                                                : fmt::format("{:>6.2f}", times.instructions_per_cycle.median());
  return fmt::format("{} {:>10} {:>9.2f} {:>12.2f} {:>8.1f} {:>7} {:>9.1f} {:>7}{}  {}\n", start,
                     in_units(static_cast<std::uint64_t>(row.cost.bytes())), row.cost.flops / 1e6,
                     times.seconds.median() * 1e6, times.bytes_per_s.median() / 1e9,
                     percent_of(times.share_of_bandwidth), times.flops_per_s.median() / 1e9,
                     percent_of(times.share_of_peak), rate, row.reads_memory ? "memory" : "reused");
}

std::string to_text(const OpsReport& report) {
  std::string text = head_of(report);
  const bool counted = counts_instructions(report);
  text += fmt::format("{:<18} {:<5} {:>5}  {:<11} {:>10} {:>9} {:>12} {:>8} {:>7} {:>9} {:>7}{}  {}\n", "op", "dtype",
                      "rows", "device", "moves", "MFLOP", "us", "GB/s", "of read", "GFLOP/s", "of peak",
                      counted ? "   IPC" : "", "from");
  for (const Row& row : report.rows) text += line_of(row, counted);
  text +=
      "\nmoves, MFLOP: per use, by the op's cost rule. of read, of peak: share of what the processor reads and "
      "multiplies,\n"
      "or of a GPU's peak as its driver tells it: memory, and products of F16 numbers on tensor cores.\n"
      "from memory: each use reads different weights (or another KV cache), together more than the caches hold.\n"
      "reused: all uses share their operands, so cached data may arrive faster than memory can be read.\n";
  if (counted) text += "IPC: instructions per cycle of all threads, outside the system's kernel.\n";
  return text;
}

Status execute(const BenchOpsOptions& options) {
  const std::vector<Op> chosen = chosen_ops(options.ops);
  if (options.curve && !options.ops.empty()) refuse("--curve measures devices, not ops; leave out OP");
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  std::span<Device* const> devices = opened(*runtime).handles();
  if (options.runtime.devices.empty()) devices = devices.first(1);
  if (options.curve) return bench_rates(devices, options.runtime.threads, options.repetitions, options.json);
  SHUNT_TRY_ASSIGN(const OpsReport report, measure_all(options, chosen, devices));
  return options.json ? print_json(to_json(report)) : print(to_text(report));
}

}  // namespace

Action bench_ops(CommandLine& line) {
  auto options = std::make_shared<BenchOpsOptions>();
  add_ops(line, options->ops, "Ops to measure");
  add_shape(line, options->shape);
  add_repetitions(line, options->repetitions);
  add_numerics(line, options->numerics);
  add_threads(line, options->runtime.threads);
  line.option("--devices", options->runtime.devices,
              "Devices to measure, such as cpu:simd,cpu:scalar [the first one that a run would use]")
      .value_name("LIST");
  line.flag("--curve", options->curve,
            "Measure devices instead of ops: the time to start a program, and GB/s by the size of a copy");
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
