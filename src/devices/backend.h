// Opens a device API: the function behind each row of backends.def, its options and its report.
//
// Plain values. A backend includes this header; devices/discovery/ decides which APIs are opened, and when.
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

// Predicts how long a device takes for a fixed amount of work.
using PredictedUs = std::function<double(const DeviceInfo&)>;

struct OpenOptions {
  // Start only the APIs of these devices, a list as select_devices() reads it. Empty: the processor and every GPU, each
  // through the API that is fastest for it.
  std::string_view devices;
  // A file that describes a simulated machine (sim/machine.h); only its devices exist then. Empty: this machine.
  std::string_view machine = {};
  std::uint32_t threads = 0;               // of the CPU; 0: one per core this process may use
  std::vector<std::uint32_t> pin_to_cpus;  // one per thread; empty: not pinned
  trace::Recorder* recorder = nullptr;     // must outlive the devices; may be null
  std::span<const DeviceInfo> known;       // devices of other APIs, perhaps the same hardware (identity.h)
  FaultTable faults = {};                  // faults to inject
  const Device* in_place_of = nullptr;     // the lost device that is being reopened
  PredictedUs predicted_us = {};           // picks the fastest API of a GPU; null: the first one
};

// Returns the names in a comma-separated list, without surrounding spaces.
[[nodiscard]] std::vector<std::string_view> names_in(std::string_view list);

// One API's report.
struct BackendReport {
  std::string api;
  std::vector<std::unique_ptr<Device>> devices;
  // Set if there are no devices: how far the start came, why it stopped there, and what would help.
  StartStage stage = StartStage::started;
  std::string absent_because = {};

  // Records that there are no devices, and why.
  void stop(StartStage where, std::string why) {
    stage = where;
    absent_because = std::move(why);
  }
  // Records an error met on the way to the API; io means that its library is missing.
  void stop(Error why) {
    stop(why.code == Code::io ? StartStage::no_library : StartStage::no_start, std::move(why.message));
  }
  // Adds a device, or records why it could not be used.
  template <class Opened>
  void add(Result<std::unique_ptr<Opened>> device) {
    if (device)
      devices.push_back(std::move(*device));
    else
      stop(StartStage::lacks, std::move(device).error().message);
  }
};

#define SHUNT_BACKEND(name, ...) [[nodiscard]] Result<BackendReport> open_##name(const OpenOptions& options);
#include "devices/backends.def"

}  // namespace shunt
