// Opens the devices of the APIs in backends.def.
//
// open_devices() starts the APIs that a list of devices needs, and reports at which stage each of the others stopped.
// The registry is a plain value owned by a Runtime; devices end with it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/backend.h"

namespace shunt {

// A row of backends.def.
struct ApiRow {
  std::string_view name;
  Result<BackendReport> (*open)(const OpenOptions& options);  // without injected faults: call start()
  // Prefix of the library's file name, if starting it may crash or hang; it is then tried in another process first
  // (probe.h). Empty: started directly in this process.
  std::string_view library = {};
  // The files its driver opens, separated by commas. If they are closed to a user, it offers less (access_hint()).
  std::string_view files = {};
  // For a vendor's own API: the prefix of the vendor's hardware numbers, and the variables, separated by commas, that
  // hide devices from it and so from every API (drop_hidden()).
  std::string_view vendor = {};
  std::string_view hidden_by = {};
  // The language of its kernels, as kernel_hashes() names it; empty: kernels of any language.
  std::string_view kernels = {};

  // Opens it and injects the requested faults into its devices.
  [[nodiscard]] Result<BackendReport> start(const OpenOptions& options) const;
};
[[nodiscard]] std::span<const ApiRow> api_rows();

struct Registry {
  std::vector<BackendReport> backends;
  [[nodiscard]] std::vector<Device*> devices() const;
  // Returns the same, as plain values.
  [[nodiscard]] std::vector<ApiReport> reports() const;
};

// Returns whether the times predicted for a device rest on measurements.
using IsMeasured = std::function<bool(const DeviceInfo&)>;

// With `is_measured`, an empty list opens the APIs of spare devices, too. Errors: those of an API whose options cannot
// be fulfilled here; invalid for pin_to_cpus, and for a name that begins with no API's name; those of the machine's
// file.
[[nodiscard]] Result<Registry> open_devices(const OpenOptions& options, const IsMeasured& is_measured = {});

// Opens a replacement for a lost device, which stays as it is. Errors: why the device is gone.
[[nodiscard]] Result<std::unique_ptr<Device>> reopen_device(const ApiRow& api, const Device& lost,
                                                            const OpenOptions& options);
// Errors: invalid for faults of a device that is not listed.
[[nodiscard]] Status check_faults(const FaultTable& faults, std::span<Device* const> devices);

// The devices that a selector chose, started in its order.
struct Selected {
  Registry registry;
  std::vector<Device*> devices;  // in order of preference
  std::vector<DeviceRejection> rejections;
};
// Starts only what is chosen. A device that fails to start is skipped, and the next one is tried. Errors: those of
// select(), and those of open_devices().
[[nodiscard]] Result<Selected> open_selected(const DeviceSelector& selector, const OpenOptions& options);

// Returns the devices that a comma-separated list of ids names, in its order. A bare API name means all of its devices
// that are not emulated; spaces around names are ignored. An empty list means all that are not emulated. If several
// APIs offer one processor, the API with the least `predicted_us` is used, else the first. Errors: invalid for an
// unknown name, with the known ones; unsupported for an absent device, with the reason, and for an API whose devices
// are all emulated, with their ids.
[[nodiscard]] Result<std::vector<Device*>> select_devices(const Registry& registry, std::string_view list,
                                                          const PredictedUs& predicted_us = {});
// Returns spare devices: the GPUs of an empty list through other APIs, if measured or predicted to take at most twice
// the least time.
[[nodiscard]] std::vector<Device*> spare_devices(const Registry& registry, const PredictedUs& predicted_us,
                                                 const IsMeasured& is_measured);

// Returns whether `name`, an id or an API, means the device; emulated devices are meant only by their ids.
[[nodiscard]] bool is_meant(const DeviceInfo& device, std::string_view api, std::string_view name);
// Says that a bare API name means no device because all of the API's devices are emulated; empty if that is not so.
[[nodiscard]] std::string only_emulated(std::string_view api, std::span<const DeviceInfo> devices);

// Makes the error "unknown device ...; there are: ...".
[[nodiscard]] std::unexpected<Error> unknown_device(std::string_view name, std::span<const std::string> ids);
// Returns the devices found for all other APIs: OpenOptions::known.
[[nodiscard]] std::vector<DeviceInfo> devices_of_others(std::span<const ApiReport> found, std::string_view api);
// Returns "vulkan" for "vulkan:0".
[[nodiscard]] std::string_view api_of(std::string_view device);

}  // namespace shunt
