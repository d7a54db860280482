// Opens the devices of the APIs in backends.def.
//
// open_devices() starts the APIs that a list of devices needs, and says of the rest at which stage it stopped. The
// registry is a plain value owned by a Runtime; devices end with it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "devices/faults.h"
#include "trace/recorder.h"

namespace shunt {

// How long a device is predicted to take for work that is the same for all.
using PredictedUs = std::function<double(const DeviceInfo&)>;

struct OpenOptions {
  // Only the APIs of these devices are started, as select_devices() reads the list. Empty: those of the processor and
  // of each GPU, of several that offer the same one the fastest.
  std::string_view devices;
  // A file that describes a machine (sim/machine.h), whose devices are simulated and all that there is; empty: this
  // machine.
  std::string_view machine = {};
  std::uint32_t threads = 0;               // of the CPU; 0: one per core this process may use
  std::vector<std::uint32_t> pin_to_cpus;  // one per thread; empty: not pinned
  trace::Recorder* recorder = nullptr;     // must outlive the devices; may be null
  std::span<const DeviceInfo> known;       // devices of other APIs: the same hardware perhaps (identity.h)
  FaultTable faults = {};                  // that devices are told to have
  const Device* in_place_of = nullptr;     // the lost one that is opened anew
  PredictedUs predicted_us = {};           // of several APIs of one GPU, which is the fastest; null: the first
};

// What one API answered.
struct BackendReport {
  std::string api;
  std::vector<std::unique_ptr<Device>> devices;
  // Where there are no devices: how far it came, why no further, and what helps.
  StartStage stage = StartStage::started;
  std::string absent_because = {};

  // No devices, and this is why.
  void stop(StartStage where, std::string why) {
    stage = where;
    absent_because = std::move(why);
  }
  // The same of an error on the way to the API: io means that its library is not there.
  void stop(Error why) {
    stop(why.code == Code::io ? StartStage::no_library : StartStage::no_start, std::move(why.message));
  }
};

#define SHUNT_BACKEND(name, ...) [[nodiscard]] Result<BackendReport> open_##name(const OpenOptions& options);
#include "devices/backends.def"

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

// "unknown device ...; there are: ..."
[[nodiscard]] std::unexpected<Error> unknown_device(std::string_view name, std::span<const std::string> ids);
// The names in a comma-separated list, without the spaces around them.
[[nodiscard]] std::vector<std::string_view> names_in(std::string_view list);
// Of what was found, the devices that other APIs than this one have: OpenOptions::known.
[[nodiscard]] std::vector<DeviceInfo> devices_of_others(std::span<const ApiReport> found, std::string_view api);
// "vulkan" of "vulkan:0".
[[nodiscard]] std::string_view api_of(std::string_view device);

}  // namespace shunt
