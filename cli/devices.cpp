// shunt devices: what can compute here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "answers.h"
#include "command.h"
#include "options.h"
#include "output.h"

namespace shunt::cli {
namespace {

std::string describe_memory(const Device& device) {
  const auto available = device.memory_available();
  const std::uint64_t total = device.info().memory_bytes;
  return fmt::format("{} of {} free", available ? in_units(*available) : "?", total != 0 ? in_units(total) : "?");
}

std::string to_text(const Registry& registry) {
  Rows rows = {{"id", "type", "threads", "memory", "name", "features"}};
  for (const Device* device : registry.devices()) {
    const DeviceInfo& info = device->info();
    rows.push_back({info.id, fmt::format("{}{}", name_of(info.type), info.emulated ? ", emulated" : ""),
                    std::to_string(info.compute_units), describe_memory(*device), info.name,
                    info.features.empty() ? "-" : fmt::format("{}", fmt::join(info.features, " "))});
  }
  std::string text = in_columns(rows);
  for (const BackendReport& backend : registry.backends)
    if (backend.devices.empty()) text += fmt::format("{}: absent, {}\n", backend.api, backend.absent_because);
  return text;
}

}  // namespace

Action devices(CLI::App& app) {
  struct Options {
    std::uint32_t threads = 0;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  add_threads(app, options->threads);
  add_json(app, options->json);
  return [options]() -> Status {
    SHUNT_TRY_ASSIGN(const Registry registry, open_devices({.every_api = true, .threads = options->threads}));
    return options->json ? print_json(to_json(registry)) : print(to_text(registry));
  };
}

}  // namespace shunt::cli
