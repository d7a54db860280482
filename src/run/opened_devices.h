// The devices that a runtime has opened, and what all that runs on them shares: costs, weight stores, the recorder.
//
// Every handle to a runtime shares one OpenedDevices. Devices end before the recorder that they record to. What
// create() has set does not change; current(), revive() and weights_of() may be called from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "devices/discovery/registry.h"
#include "plan/costs/cost.h"
#include "run/pool/memory_budget.h"
#include "run/weight_store.h"
#include "shunt/runtime.h"

namespace shunt {

class OpenedDevices : public std::enable_shared_from_this<OpenedDevices> {
 public:
  // Errors: those of Runtime::create().
  [[nodiscard]] static Result<std::shared_ptr<OpenedDevices>> create(const RuntimeOptions& options);
  // A runtime over devices that the caller has opened, all of them chosen; the last `spares` are spare. `options`
  // contribute how things are run and whether measured costs count.
  [[nodiscard]] static std::unique_ptr<Runtime> runtime(Registry registry, std::unique_ptr<trace::Recorder> recorder,
                                                        const RuntimeOptions& options, std::size_t spares);
  // What a runtime has opened.
  [[nodiscard]] static OpenedDevices& of(const Runtime& runtime) { return *runtime.opened_; }

  [[nodiscard]] const RuntimeOptions& options() const { return options_; }
  [[nodiscard]] std::span<const DeviceInfo> infos() const { return infos_; }
  [[nodiscard]] std::span<const std::uint64_t> budgets() const { return budgets_; }
  // The budget of a device as it was at the start; those that the user did not set follow free memory.
  [[nodiscard]] MemoryBudget budget(std::size_t device) const;
  [[nodiscard]] std::span<const std::string> warnings() const { return warnings_; }
  [[nodiscard]] std::span<const DeviceRejection> rejections() const { return rejections_; }
  // The devices themselves, in the order of infos().
  [[nodiscard]] std::span<Device* const> handles() const { return handles_; }
  // How many of them, the last ones, are spare: GPUs in use, through other APIs. A device pool uses a GPU through one
  // API at a time.
  [[nodiscard]] std::size_t spares() const { return spares_; }
  // The costs of each device, as measured by `shunt calibrate`, else its prior.
  [[nodiscard]] std::span<const DeviceCost> costs() const { return costs_; }
  // Every API, with its devices or the reason it has none.
  [[nodiscard]] const Registry& registry() const { return *registry_; }
  [[nodiscard]] trace::Recorder& recorder() const { return *recorder_; }

  // The device now in use for handles()[device]: the same one, or the one opened after it was lost.
  [[nodiscard]] Device* current(std::size_t device);
  // Opens a lost device again, unless that was already done. Errors: the reason it cannot be opened.
  [[nodiscard]] Result<Device*> revive(std::size_t device);
  // The copies of a source's weights, shared by everything that runs on these devices. `source` may be null.
  [[nodiscard]] std::shared_ptr<WeightStore> weights_of(WeightSource* source);

 private:
  explicit OpenedDevices(const RuntimeOptions& options) : options_(options) {}
  [[nodiscard]] OpenOptions open_options() const;
  [[nodiscard]] Status open(const Profile& profile);
  void use(std::vector<Device*> chosen, std::span<Device* const> spares);
  // Predicts by what was measured of the devices, and has them take the kernels that were fastest.
  void use_measurements(const Profile& profile);
  [[nodiscard]] Status set_budgets();

  RuntimeOptions options_;
  FaultTable faults_;
  std::unique_ptr<trace::Recorder> recorder_;
  std::unique_ptr<Registry> registry_;
  std::vector<Device*> handles_;
  std::size_t spares_ = 0;
  std::vector<DeviceInfo> infos_;  // one per device, like the vectors below
  std::vector<std::uint64_t> budgets_;
  std::vector<DeviceCost> costs_;
  std::vector<KernelChoices> choices_;
  std::vector<std::string> warnings_;
  std::vector<DeviceRejection> rejections_;

  std::mutex mutex_;  // of what follows
  // Devices that replace lost ones. Lost devices stay for owners of their memory.
  std::vector<std::unique_ptr<Device>> revived_;
  std::vector<Device*> current_;
  std::map<const WeightSource*, std::weak_ptr<WeightStore>> weights_;  // the stores in use
};

[[nodiscard]] inline OpenedDevices& opened(const Runtime& runtime) { return OpenedDevices::of(runtime); }
[[nodiscard]] inline std::unique_ptr<Runtime> runtime_over(Registry registry, std::unique_ptr<trace::Recorder> recorder,
                                                           const RuntimeOptions& options = {.calibrated = false},
                                                           std::size_t spares = 0) {
  return OpenedDevices::runtime(std::move(registry), std::move(recorder), options, spares);
}

}  // namespace shunt
