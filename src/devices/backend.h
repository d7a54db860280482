// How a device API is opened: the function that each row of backends.def names, what it is told, and what it answers.
//
// Plain values. A backend includes this; which APIs are opened, and when, is devices/discovery/'s.
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

// The names in a comma-separated list, without the spaces around them.
[[nodiscard]] std::vector<std::string_view> names_in(std::string_view list);

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

}  // namespace shunt
