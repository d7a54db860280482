// The devices of this machine, chosen and started: what graphs and models run on.
//
// A Runtime is a handle: sessions, computations and arrays keep what they use of it, so that handles and objects may
// end in any order. The devices and the record of what they did end with the last of them. devices() and what was
// recorded may be read from any thread.
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

class Device;
class DeviceCost;
struct Registry;
class WeightSource;
class WeightStore;
namespace trace {
class Recorder;
struct Recording;
}  // namespace trace

struct RuntimeOptions {
  // Threads of the CPU, the caller's included; 0: one per core this process may use.
  std::uint32_t threads = 0;
  // The processor of each thread but the caller's (entry 0); empty: not pinned.
  std::vector<std::uint32_t> pin_to_cpus;
  // Comma-separated device ids or API names (without emulated devices) in order of preference. Empty: what the variable
  // SHUNT_DEVICES lists, else the processor and each GPU, of several APIs through the one predicted to be fastest.
  std::string devices;
  // A file that describes a machine (docs/machines.md), whose simulated devices are used in place of this one's, by the
  // ids that it gives them; empty: this machine.
  std::string machine = {};
  // Instead of a list: requirements on devices, their order of preference, and how many to take.
  std::optional<DeviceSelector> selector = std::nullopt;
  // For devices by their ids: how many bytes of their memory may be used. Without it what is free when the runtime
  // starts, but for a little; of the host's memory as much as is asked for.
  std::map<std::string, std::uint64_t> budgets = {};
  // Whether measurements of this machine tell how fast devices are. Where there are none, and a model is to do so much
  // that it can pay, devices are then measured for up to 3 s (docs/calibration.md).
  bool calibrated = true;
  // Record events from the start.
  bool trace = false;
  // Where a device fails, and where one that the caller prefers cannot run an op: an error, and nothing runs elsewhere.
  bool strict = false;
  // What one program may take until its device counts as hung; nothing: 30 s and 100 times what was predicted.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  // Of the runs of a plan, each of that number has one of its ops computed again by the scalar reference, each time the
  // next one; a device whose result is another has failed, and is not used again. 0: none (docs/failures.md).
  std::uint32_t audit = 0;
  // Faults that devices are told to have, such as "vulkan:0 lost at op 250, cuda:0 oom after 3 allocations", to see
  // what becomes of a program then (docs/failures.md). Empty: what the environment variable SHUNT_FAULTS says.
  std::string faults = {};
  // Gets what the user should hear of while something runs: that a device failed, and what happens now; that devices
  // are measured. On the thread that runs it.
  std::function<void(const std::string& text)> on_notice = {};
  // Progress and interruption of long calls of everything that runs on it.
  Watch watch = {};
};

// RuntimeOptions::budgets of a text such as "vulkan:0=4GiB, cuda:0=512MiB". Errors: invalid for what is no such text.
[[nodiscard]] Result<std::map<std::string, std::uint64_t>> budgets_from_text(std::string_view text);

class Runtime {
 public:
  // Errors: invalid for an unknown device, for both a list and a selector of devices, a forbidden processor, a budget
  // or a fault of a device that is not used, or a machine's file that says what it may not; unsupported for an absent
  // device, io for a file that cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options);
  // Over devices that the caller has opened, all of them chosen. `recorder` is what they record to; of `options` count
  // those that say how things are run, and whether measured costs count.
  [[nodiscard]] static std::unique_ptr<Runtime> over(Registry registry, std::unique_ptr<trace::Recorder> recorder,
                                                     const RuntimeOptions& options = {.calibrated = false});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  // Another handle to the same runtime.
  [[nodiscard]] std::unique_ptr<const Runtime> share() const;

  [[nodiscard]] const RuntimeOptions& options() const;
  // The devices in use, in order of preference, as they were when they were opened.
  [[nodiscard]] std::span<const DeviceInfo> devices() const;
  // How many bytes of each one's memory plans may use; kNoBudget: as many as are asked for.
  [[nodiscard]] std::span<const std::uint64_t> budgets() const;
  // What the user should hear of, such as measurements that could not be read.
  [[nodiscard]] std::span<const std::string> warnings() const;
  // Devices and APIs that are there or were looked for but are not in use, and why.
  [[nodiscard]] std::span<const DeviceRejection> rejections() const;

  // A copy of what was recorded since the start, or since it was last cleared, with the newest 262,144 events
  // (shunt/trace.h). Any thread, also while something runs.
  [[nodiscard]] trace::Recording recording() const;
  // Forgets the events so far; plans that were made are kept, for the events of their later runs. Any thread.
  void clear_recording() const;
  // Writes what was recorded so far as a trace that `shunt report` reads (docs/telemetry.md). The file appears when it
  // is whole, or not at all. Errors: invalid for what is no regular file, io.
  [[nodiscard]] Status write_trace(const std::string& path) const;

  // The rest is of use inside the library only.
  // The devices themselves, in the order of devices().
  [[nodiscard]] std::span<Device* const> handles() const;
  // What each one takes for what: as `shunt calibrate` measured it, else its prior.
  [[nodiscard]] std::span<const DeviceCost> costs() const;
  // What works in place of a device of handles(): itself, or what was opened after it was lost.
  [[nodiscard]] Device* current(std::size_t device) const;
  // Opens it anew if it is lost and nobody has done so. Any thread. Errors: why that is not possible.
  [[nodiscard]] Result<Device*> revive(std::size_t device) const;
  // The copies of a source's weights on these devices, of all that run here; `source` may be null. Any thread.
  [[nodiscard]] std::shared_ptr<WeightStore> weights_of(WeightSource* source) const;
  // Every API, with its devices or why it has none.
  [[nodiscard]] const Registry& registry() const;
  // What all record to.
  [[nodiscard]] trace::Recorder& recorder() const;

 private:
  struct Parts;
  explicit Runtime(std::shared_ptr<Parts> parts);
  std::shared_ptr<Parts> parts_;
};

}  // namespace shunt
