// shunt devices: lists the devices of each API, or why it has none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "answers.h"
#include "command.h"
#include "devices/discovery/registry.h"
#include "options.h"
#include "output.h"
#include "shunt/devices.h"

namespace shunt::cli {
namespace {

std::string or_unknown(std::uint64_t number, std::string_view unit = "") {
  return number == 0 ? "?" : fmt::format("{}{}", number, unit);
}

std::string describe_memory(const DeviceInfo& device, const FreeMemory& free) {
  const auto available = available_to(device, free);
  return fmt::format("{} of {} free", available ? in_units(*available) : "?",
                     device.memory_bytes != 0 ? in_units(device.memory_bytes) : "?");
}

std::string driver_of(const DeviceInfo& device) {
  if (!device.driver.empty()) return device.driver;
  return device.api_version.empty() ? "-" : device.api_version;
}

// The first listed device on the same processor; "-" if it is this one.
std::string first_of(const DeviceInfo& device, std::span<const ApiReport> found) {
  for (const ApiReport& report : found)
    for (const DeviceInfo& other : report.devices)
      if (other.compute_resource == device.compute_resource) return other.id == device.id ? "-" : other.id;
  return "-";
}

std::string to_text(std::span<const ApiReport> found) {
  const FreeMemory free = free_memory(devices_of(found));
  Rows rows = {{"id", "type", "runs on", "memory", "name", "driver"}};
  for (const ApiReport& report : found)
    for (const DeviceInfo& device : report.devices)
      rows.push_back({device.id, fmt::format("{}{}", name_of(device.type), device.emulated ? ", emulated" : ""),
                      first_of(device, found), describe_memory(device, free), device.name, driver_of(device)});
  std::string text = in_columns(rows);
  for (const ApiReport& report : found)
    if (report.devices.empty())
      text += fmt::format("{}: absent ({}), {}\n", report.api, name_of(report.stage), report.reason);
  return text;
}

std::string features_to_text(std::span<const ApiReport> found) {
  Rows rows = {{"id", "API", "units", "clock", "workgroup", "shared", "subgroup", "binding", "features"}};
  for (const ApiReport& report : found)
    for (const DeviceInfo& device : report.devices) {
      std::vector<std::string> words;
      for (const DeviceFeature feature : device.features.list()) words.emplace_back(name_of(feature));
      words.insert(words.end(), device.details.begin(), device.details.end());
      rows.push_back(
          {device.id, device.api_version.empty() ? "-" : device.api_version, or_unknown(device.compute_units),
           or_unknown(device.clock_mhz, " MHz"), or_unknown(device.largest_workgroup),
           device.shared_memory_bytes == 0 ? "?" : in_units(device.shared_memory_bytes),
           or_unknown(device.subgroup_size),
           device.largest_binding_bytes == ~std::uint64_t{0} ? "any" : in_units(device.largest_binding_bytes),
           words.empty() ? "-" : fmt::format("{}", fmt::join(words, " "))});
    }
  return in_columns(rows);
}

// Prints hints, and how long drivers took to start.
void say_more(std::span<const ApiReport> found) {
  std::vector<std::string> times;
  for (const ApiReport& report : found) {
    const bool has_driver = std::ranges::none_of(report.devices, &DeviceInfo::is_host_cpu);
    if (has_driver && !report.is_known && report.start_ms >= 1)
      times.push_back(fmt::format("{} {:.0f} ms", report.api, report.start_ms));
    if (!report.hint.empty()) note(fmt::format("{}: {}", report.api, report.hint));
  }
  if (!times.empty()) note(fmt::format("Started these drivers at the same time: {}.", fmt::join(times, ", ")));
}

// Finds the devices of this machine, or those of the machine that a file describes.
Result<std::vector<ApiReport>> find(const FindOptions& options, const std::string& machine) {
  if (machine.empty()) return find_devices(options);
  SHUNT_TRY_ASSIGN(const Registry registry, open_devices({.machine = machine}));
  std::vector<ApiReport> found = registry.reports();
  std::erase_if(found, [](const ApiReport& report) { return report.devices.empty(); });
  return found;
}

}  // namespace

Action devices(CommandLine& line) {
  struct DevicesOptions {
    FindOptions find;
    std::string machine;
    bool features = false;
    bool json = false;
  };
  auto options = std::make_shared<DevicesOptions>();
  add_threads(line, options->find.threads);
  line.flag("--features", options->features, "Show limits and features instead of memory and drivers");
  line.flag("--again", options->find.again,
            "Start every driver again, even if nothing has changed since the last time");
  add_machine(line, options->machine);
  add_json(line, options->json);
  return [options]() -> Status {
    SHUNT_TRY_ASSIGN(const std::vector<ApiReport> found, find(options->find, options->machine));
    if (options->json) return print_json(to_json(found));
    say_more(found);
    return print(options->features ? features_to_text(found) : to_text(found));
  };
}

}  // namespace shunt::cli
