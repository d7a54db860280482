// The devices that graphs and models run on, selected and started.
//
// A Runtime is a handle. Sessions, computations and arrays share ownership of what they use of it, so handles and
// objects may be destroyed in any order. Devices and the recording live until the last of them is gone. devices() and
// the recording may be read from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/devices.h"
#include "shunt/status.h"
#include "shunt/watch.h"

namespace shunt {

class OpenedDevices;
namespace trace {
struct Recording;
}  // namespace trace

struct RuntimeOptions {
  // CPU threads, including the caller's. 0: one per core that this process may use.
  std::uint32_t threads = 0;
  // The processor that each thread is pinned to; entry 0 is the caller's, which is not pinned. Empty: no pinning.
  std::vector<std::uint32_t> pin_to_cpus;
  // Comma-separated device ids or API names (without emulated devices) in order of preference. Empty: the environment
  // variable SHUNT_DEVICES; without it the CPU and each GPU, through the API predicted fastest for each model or graph.
  std::string devices;
  // A file that describes a machine to simulate (docs/machines.md). Its devices replace those of this machine and have
  // the ids that the file gives them. Empty: this machine.
  std::string machine = {};
  // Replaces the list of devices: their requirements, order of preference and number.
  std::optional<DeviceSelector> selector = std::nullopt;
  // Bytes of memory that plans may use, by device id. By default nearly all memory that is free, also when that
  // changes; host memory has no limit.
  std::map<std::string, std::uint64_t> budgets = {};
  // Predict with measurements of this machine. If there are none and a model has enough work to do, devices are then
  // measured for up to 3 s (docs/calibration.md).
  bool calibrated = true;
  // Record events from the start.
  bool trace = false;
  // Return an error if a device fails, or if the preferred device cannot run an op. Nothing runs elsewhere.
  bool strict = false;
  // The time after which an unfinished program's device counts as hung. Empty: 30 s plus 100 times the predicted time.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  // In every n-th run of a plan, the scalar reference computes one op again, each time the next one. A device with a
  // wrong result has failed and is not used again. 0: no audits (docs/failures.md).
  std::uint32_t audit = 0;
  // Faults to inject, such as "vulkan:0 lost at op 250, cuda:0 oom after 3 allocations" (docs/failures.md). Empty: the
  // environment variable SHUNT_FAULTS.
  std::string faults = {};
  // Receives messages for the user during a run: a device failed and what replaces it, or devices are measured. Called
  // on the thread that made the call.
  std::function<void(const std::string& text)> on_notice = {};
  // Progress and interruption of long calls on all objects that use this runtime.
  Watch watch = {};
};

// Parses text such as "vulkan:0=4GiB, cuda:0=auto" or "auto" for RuntimeOptions::budgets. Errors: invalid otherwise.
[[nodiscard]] Result<std::map<std::string, std::uint64_t>> budgets_from_text(std::string_view text);

class Runtime {
 public:
  // Starts the devices. Errors: invalid for an unknown device, a forbidden processor or a malformed machine file; also
  // for a list together with a selector, or a budget or fault of a device that is not in use; unsupported for an absent
  // device; io for a file that cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  // Returns another handle to the same runtime.
  [[nodiscard]] std::unique_ptr<const Runtime> share() const;

  [[nodiscard]] const RuntimeOptions& options() const;
  // The devices in use as they were opened, in order of preference; then GPUs that may be used through other APIs.
  [[nodiscard]] std::span<const DeviceInfo> devices() const;
  // Bytes of each device's memory that plans may use, as at the start; kNoBudget: no limit.
  [[nodiscard]] std::span<const std::uint64_t> budgets() const;
  // Messages for the user about the start, such as measurements that could not be read.
  [[nodiscard]] std::span<const std::string> warnings() const;
  // Devices and APIs that were found or requested but are not in use, and why.
  [[nodiscard]] std::span<const DeviceRejection> rejections() const;

  // Copies what was recorded since the start or the last clear: at most the newest 262,144 events (shunt/trace.h). Any
  // thread, also during a run.
  [[nodiscard]] trace::Recording recording() const;
  // Drops the events so far. Plans stay, because later runs refer to them. Any thread.
  void clear_recording() const;
  // Writes the recording as a trace that `shunt report` reads (docs/telemetry.md). The file appears complete or not at
  // all. Errors: invalid if the path is not a regular file; io.
  [[nodiscard]] Status write_trace(const std::string& path) const;

 private:
  friend class OpenedDevices;
  explicit Runtime(std::shared_ptr<OpenedDevices> opened);
  std::shared_ptr<OpenedDevices> opened_;
};

}  // namespace shunt
