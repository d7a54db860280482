// Finds the devices of every API in backends.def.
//
// open_devices() starts what is there and says of the rest at which stage it stopped. The registry is a
// plain value owned by a Runtime; devices end with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "trace/recorder.h"

namespace shunt {

struct OpenOptions {
  // Only the APIs of these devices are started, as select_devices() reads the list; empty: all but those that
  // backends.def starts only where they are named.
  std::string_view devices;
  bool every_api = false;                  // also those
  std::uint32_t threads = 0;               // of the CPU; 0: one per core this process may use
  std::vector<std::uint32_t> pin_to_cpus;  // one per thread; empty: not pinned
  trace::Recorder* recorder = nullptr;     // must outlive the devices; may be null
};

// What one API answered.
struct BackendReport {
  std::string api;
  std::vector<std::unique_ptr<Device>> devices;
  std::string absent_because = {};  // where there are no devices: the stage where it stopped, and what helps
};

#define SHUNT_BACKEND(name) [[nodiscard]] Result<BackendReport> open_##name(const OpenOptions& options);
#include "devices/backends.def"

struct Registry {
  std::vector<BackendReport> backends;
  [[nodiscard]] std::vector<Device*> devices() const;
};

// Errors: those of an API whose options cannot be fulfilled here; invalid for pin_to_cpus.
[[nodiscard]] Result<Registry> open_devices(const OpenOptions& options);

// The devices that a comma-separated list of ids names, in its order; a bare API name means all of its
// devices; spaces around names do not count. An empty list: all that are not emulated. Errors: invalid for an
// unknown name, with the known ones.
[[nodiscard]] Result<std::vector<Device*>> select_devices(const Registry& registry, std::string_view list);

// The names in a comma-separated list, without the spaces around them.
[[nodiscard]] std::vector<std::string_view> names_in(std::string_view list);

}  // namespace shunt
