// shunt devices: what can compute here.
#include "command.h"
#include "devices/registry.h"

namespace shunt::cli {
namespace {

Json to_json(const DeviceInfo& info, std::optional<std::uint64_t> available) {
  return {{"id", info.id},
          {"name", info.name},
          {"vendor", info.vendor},
          {"type", name_of(info.type)},
          {"emulated", info.emulated},
          {"compute_resource", info.compute_resource},
          {"memory_pool", info.memory_pool},
          {"memory_bytes", info.memory_bytes},
          {"memory_available_bytes", available ? Json(*available) : Json()},
          {"compute_units", info.compute_units},
          {"features", info.features}};
}

Status print_json(const Runtime& runtime) {
  Json json = {{"devices", Json::array()}, {"absent", Json::array()}};
  for (const BackendReport& backend : runtime.registry().backends) {
    for (const auto& device : backend.devices) json["devices"].push_back(to_json(device->info(), device->memory_available()));
    if (backend.devices.empty()) json["absent"].push_back({{"api", backend.api}, {"reason", backend.absent_because}});
  }
  return print(json);
}

Status print_table(const Runtime& runtime) {
  std::string text = fmt::format("{:<12} {:<44} {:<10} {:>7} {:>22}  {}\n", "device", "name", "type", "threads",
                                 "memory free / all", "features");
  for (const BackendReport& backend : runtime.registry().backends) {
    for (const auto& device : backend.devices) {
      const DeviceInfo& info = device->info();
      const auto available = device->memory_available();
      text += fmt::format("{:<12} {:<44} {:<10} {:>7} {:>22}  {}{}\n", info.id, info.name, name_of(info.type),
                          info.compute_units,
                          fmt::format("{} / {}", available ? in_units(*available) : "?", in_units(info.memory_bytes)),
                          fmt::join(info.features, " "), info.emulated ? " (emulated)" : "");
    }
    if (backend.devices.empty()) text += fmt::format("{:<12} absent: {}\n", backend.api, backend.absent_because);
  }
  return print(text);
}

}  // namespace

Action devices(CLI::App& command);
Action devices(CLI::App& command) {
  struct Options {
    RuntimeOptions runtime;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  add_runtime(command, options->runtime);
  add_json(command, options->json);
  return [options]() -> Status {
    SHUNT_TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create(options->runtime));
    return options->json ? print_json(*runtime) : print_table(*runtime);
  };
}

}  // namespace shunt::cli
