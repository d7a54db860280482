// Opens the devices of the APIs in backends.def.
//
// open_devices() starts the APIs that a list of devices needs, and says of the rest at which stage it stopped. The
// registry is a plain value owned by a Runtime; devices end with it.
#pragma once

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
  Result<BackendReport> (*open)(const OpenOptions& options);  // but for faults: call start()
  // How the file name begins of what may crash or hang when it starts, which is tried in another process first
  // (probe.h); empty: nothing of the kind, started where it is asked for.
  std::string_view library = {};
  // What its driver opens of the system, with commas between: closed to a user, it offers less (access_hint()).
  std::string_view files = {};
  // How the hardware numbers of its vendor begin, if it is the vendor's own API, and the variables, with commas
  // between, that hide devices from it, and so from every API (drop_hidden()).
  std::string_view vendor = {};
  std::string_view hidden_by = {};
  // The language of its kernels, as kernel_hashes() has it; empty: those of all languages may be among them.
  std::string_view kernels = {};

  // Opens it, and gives its devices their faults.
  [[nodiscard]] Result<BackendReport> start(const OpenOptions& options) const;
};
[[nodiscard]] std::span<const ApiRow> api_rows();

struct Registry {
  std::vector<BackendReport> backends;
  [[nodiscard]] std::vector<Device*> devices() const;
  // The same as plain values.
  [[nodiscard]] std::vector<ApiReport> reports() const;
};

// Errors: those of an API whose options cannot be fulfilled here; invalid for pin_to_cpus, and for a name that begins
// with that of no API; those of the machine's file.
[[nodiscard]] Result<Registry> open_devices(const OpenOptions& options);

// A device of an API in place of one that was lost, which stays where it is. Errors: why there is none any more.
[[nodiscard]] Result<std::unique_ptr<Device>> open_anew(const ApiRow& api, const Device& lost,
                                                        const OpenOptions& options);
// Errors: invalid for faults of a device that is none of these.
[[nodiscard]] Status check_faults(const FaultTable& faults, std::span<Device* const> devices);

// What a selector takes, started in its order.
struct Selected {
  Registry registry;
  std::vector<Device*> devices;  // in order of preference
  std::vector<DeviceRejection> rejections;
};
// Starts no more than is taken; what fails to start is passed over, and what comes next is tried. Errors: those of
// select(), and those of open_devices().
[[nodiscard]] Result<Selected> open_selected(const DeviceSelector& selector, const OpenOptions& options);

// The devices that a comma-separated list of ids names, in its order; a bare API name means all of its devices that are
// not emulated; spaces around names do not count. An empty list: all that are not emulated, of one processor that
// several APIs offer those of the API that `predicted_us` is least for, or that comes first. Errors: invalid for an
// unknown name, with the known ones; unsupported for an absent one, with the reason, and for an API whose devices are
// all emulated, with their ids.
[[nodiscard]] Result<std::vector<Device*>> select_devices(const Registry& registry, std::string_view list,
                                                          const PredictedUs& predicted_us = {});

// Whether `name`, an id or an API, means the device: an emulated one only by its id.
[[nodiscard]] bool is_meant(const DeviceInfo& device, std::string_view api, std::string_view name);
// Why the name of an API means none of its devices: all are emulated. Empty: that is not so.
[[nodiscard]] std::string only_emulated(std::string_view api, std::span<const DeviceInfo> devices);

// "unknown device ...; choose from: ..."
[[nodiscard]] std::unexpected<Error> unknown_device(std::string_view name, std::span<const std::string> ids);
// Of what was found, the devices that other APIs than this one have: OpenOptions::known.
[[nodiscard]] std::vector<DeviceInfo> devices_of_others(std::span<const ApiReport> found, std::string_view api);
// "vulkan" of "vulkan:0".
[[nodiscard]] std::string_view api_of(std::string_view device);

}  // namespace shunt
