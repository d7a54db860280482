#include "bench_rates.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "devices/cpu/limits.h"
#include "interrupt.h"
#include "output.h"
#include "run/measure/device_rates.h"
#include "samples.h"

namespace shunt::cli {
namespace {

// A size is not measured again after this time.
constexpr double kMostSecondsPerSize = 1;
// If a copy takes longer, larger ones are not measured.
constexpr double kLongCopyUs = 1e5;

struct Point {
  std::uint64_t bytes = 0;
  Samples us;
  Samples bytes_per_s;
  Samples share_of_bandwidth;  // relative to the rate at which the processor read memory just before
};

struct DeviceRates {
  std::string device;
  std::string name;
  bool is_host_cpu = false;
  Samples program_us;
  Samples op_us;
  std::vector<Point> curve;
  std::string end;  // why there are no larger sizes, or no sizes at all
};

struct RatesReport {
  std::uint32_t threads = 0;
  Samples read_bytes_per_s;
  std::vector<DeviceRates> devices;
};

Status not_interrupted() {
  if (catch_interrupts().load()) return fail(Code::interrupted, "interrupted");
  return {};
}

Result<LaunchCost> measure_launch(Device& device, std::uint32_t repetitions, DeviceRates& rates) {
  SHUNT_TRY_ASSIGN(const auto bench, LaunchBench::create(device));
  for (std::uint32_t done = 0; done < repetitions; ++done) {
    SHUNT_TRY(not_interrupted());
    SHUNT_TRY_ASSIGN(const LaunchCost cost, bench->measure());
    rates.program_us.add(cost.program_us);
    rates.op_us.add(cost.op_us);
  }
  return LaunchCost{.program_us = rates.program_us.median(), .op_us = rates.op_us.median()};
}

Result<Point> measure_point(Device& device, std::uint64_t bytes, const LaunchCost& launch, cpu::Limits& limits,
                            std::uint32_t repetitions, Samples& read_bytes_per_s) {
  Point point{.bytes = bytes};
  const Stopwatch watch;
  SHUNT_TRY_ASSIGN(const auto bench, CopyBench::create(device, bytes, launch));
  for (std::uint32_t done = 0; done < repetitions && (done == 0 || watch.seconds() < kMostSecondsPerSize); ++done) {
    SHUNT_TRY(not_interrupted());
    const double limit = limits.read_bytes_per_s();
    SHUNT_TRY_ASSIGN(const double us, bench->measure_us());
    const double rate = static_cast<double>(bytes) / us * 1e6;
    read_bytes_per_s.add(limit);
    point.us.add(us);
    point.bytes_per_s.add(rate);
    point.share_of_bandwidth.add(rate / limit);
  }
  return point;
}

Result<DeviceRates> measure_device(Device& device, cpu::Limits& limits, std::uint32_t repetitions, Samples& read) {
  const DeviceInfo& info = device.info();
  DeviceRates rates{.device = info.id, .name = info.name, .is_host_cpu = info.is_host_cpu()};
  ProgressLine line;
  line.show(fmt::format("{}: launch", info.id));
  const Result<LaunchCost> launch = measure_launch(device, repetitions, rates);
  if (!launch && launch.error().code == Code::unsupported) {
    rates.end = launch.error().message;
    return rates;
  }
  if (!launch) return std::unexpected(launch.error());
  for (const std::uint64_t bytes : curve_sizes(device)) {
    line.show(fmt::format("{}: copies of {}", info.id, in_units(bytes)));
    auto point = measure_point(device, bytes, *launch, limits, repetitions, read);
    if (!point && point.error().code == Code::out_of_memory) {
      rates.end = point.error().message;
      break;
    }
    if (!point) return std::unexpected(std::move(point).error());
    rates.curve.push_back(std::move(*point));
    if (rates.curve.back().us.median() < kLongCopyUs) continue;
    rates.end = fmt::format("a copy of {} takes too long to try larger ones", in_units(bytes));
    break;
  }
  return rates;
}

Json to_json(const RatesReport& report) {
  Json json = {{"threads", report.threads},
               {"read_bytes_per_s", report.read_bytes_per_s.empty() ? Json() : json_of(report.read_bytes_per_s)},
               {"devices", Json::array()}};
  for (const DeviceRates& rates : report.devices) {
    Json& device = json["devices"].emplace_back(Json{{"device", rates.device}, {"name", rates.name}});
    if (!rates.end.empty()) device["end"] = rates.end;
    if (rates.program_us.empty()) continue;
    device.update(
        {{"program_us", json_of(rates.program_us)}, {"op_us", json_of(rates.op_us)}, {"curve", Json::array()}});
    for (const Point& point : rates.curve) {
      Json& row = device["curve"].emplace_back(
          Json{{"bytes", point.bytes}, {"us", json_of(point.us)}, {"bytes_per_s", json_of(point.bytes_per_s)}});
      if (rates.is_host_cpu) row["share_of_bandwidth"] = json_of(point.share_of_bandwidth);
    }
  }
  return json;
}

std::string to_text(const DeviceRates& rates) {
  std::string text = fmt::format("\n{}, {}\n", rates.device, rates.name);
  if (!rates.program_us.empty()) {
    text += fmt::format("a program of one tiny op {:8.2f} us\neach further tiny op     {:8.2f} us\n",
                        rates.program_us.median(), rates.op_us.median());
    text += fmt::format("{:>10} {:>12} {:>8}{}\n", "moves", "us", "GB/s", rates.is_host_cpu ? "  of read" : "");
  }
  for (const Point& point : rates.curve) {
    text += fmt::format("{:>10} {:>12.2f} {:>8.2f}", in_units(point.bytes), point.us.median(),
                        point.bytes_per_s.median() / 1e9);
    if (rates.is_host_cpu) text += fmt::format("  {:>5.0f} %", 100 * point.share_of_bandwidth.median());
    text += '\n';
  }
  if (!rates.end.empty())
    text += fmt::format("{} {}\n", rates.curve.empty() ? "unsupported:" : "no larger sizes:", rates.end);
  return text;
}

std::string to_text(const RatesReport& report) {
  std::string text = fmt::format("copies of F32, one after another; threads: {}; medians\n", report.threads);
  if (!report.read_bytes_per_s.empty())
    text += fmt::format("memory read {:.1f} GB/s\n", report.read_bytes_per_s.median() / 1e9);
  for (const DeviceRates& rates : report.devices) text += to_text(rates);
  text +=
      "\na program: the time from submission until completion. moves: the bytes that one copy reads and writes, half "
      "each,\n"
      "which a cache would have to hold. us: the time of one copy among many in a program, without starting it.\n";
  return text;
}

}  // namespace

Status bench_rates(std::span<Device* const> devices, std::uint32_t threads, std::uint32_t repetitions, bool json) {
  SHUNT_TRY_ASSIGN(const auto limits, cpu::Limits::create(threads));
  RatesReport report{.threads = limits->threads()};
  for (Device* device : devices) {
    SHUNT_TRY_ASSIGN(DeviceRates rates, measure_device(*device, *limits, repetitions, report.read_bytes_per_s));
    report.devices.push_back(std::move(rates));
  }
  return json ? print_json(to_json(report)) : print(to_text(report));
}

}  // namespace shunt::cli
