#include "shunt/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/system/thread_pool.h"
#include "devices/discovery/registry.h"
#include "devices/discovery/rejections.h"
#include "plan/costs/cost.h"
#include "plan/planner.h"
#include "run/weight_store.h"
#include "trace/recorder.h"
#include "trace/recording.h"

namespace shunt {
namespace {

// With an event for each op of a model, some hundred a step, this keeps some hundred steps: 16 MiB.
constexpr std::size_t kTraceEvents = 1U << 18U;

// The usable share of a device's free memory; drivers keep some for programs and themselves.
constexpr double kShareOfFree = 0.95;

std::vector<std::uint64_t> budgets_of(std::span<Device* const> devices,
                                      const std::map<std::string, std::uint64_t>& named) {
  std::vector<std::uint64_t> budgets;
  for (const Device* device : devices) {
    const auto found = named.find(device->info().id);
    const auto available = device->info().memory_pool == kHostPool ? std::nullopt : device->memory_available();
    if (found != named.end())
      budgets.push_back(found->second);
    else if (available)
      budgets.push_back(static_cast<std::uint64_t>(static_cast<double>(*available) * kShareOfFree));
    else
      budgets.push_back(kNoBudget);
  }
  return budgets;
}

// Loads what was measured of this machine, if the options allow it.
Profile profile_for(const RuntimeOptions& options, std::vector<std::string>& warnings) {
  if (!options.calibrated) return {};
  const auto path = profile_path();
  std::string warning;
  auto loaded = path ? load_profile(*path, warning) : Result<Profile>(std::unexpected(path.error()));
  if (!loaded && path) warning = loaded.error().message;
  if (!warning.empty()) warnings.push_back(std::move(warning));
  return loaded ? std::move(*loaded) : Profile{};
}

std::vector<DeviceCost> costs_of(std::span<Device* const> devices, const Profile& profile) {
  std::vector<DeviceCost> costs;
  for (const Device* device : devices) costs.emplace_back(device->info(), profile.find(device->info()));
  return costs;
}

std::string from_the_environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

// The parts that all handles share. Devices end before the recorder that they record to.
struct Runtime::Parts {
  explicit Parts(const RuntimeOptions& its_options) : options(its_options) {}

  [[nodiscard]] OpenOptions open_options() const {
    return {.devices = options.devices,
            .machine = options.machine,
            .threads = options.threads,
            .pin_to_cpus = options.pin_to_cpus,
            .recorder = recorder.get(),
            .known = {},
            .faults = faults};
  }
  [[nodiscard]] Status open();
  // Uses these devices.
  void use(std::vector<Device*> chosen) {
    devices = std::move(chosen);
    for (const Device* device : devices) infos.push_back(device->info());
    current = devices;
  }
  [[nodiscard]] Status set_budgets(const std::map<std::string, std::uint64_t>& named);

  RuntimeOptions options;
  FaultTable faults;
  std::unique_ptr<trace::Recorder> recorder;
  std::unique_ptr<Registry> registry;
  std::vector<Device*> devices;
  std::vector<DeviceInfo> infos;  // one per device, like the vectors below
  std::vector<std::uint64_t> budgets;
  std::vector<DeviceCost> costs;
  std::vector<std::string> warnings;
  std::vector<DeviceRejection> rejections;

  // Devices that replace lost ones. Lost devices stay for owners of their memory.
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> revived;
  std::vector<Device*> current;
  // The stores in use.
  std::map<const WeightSource*, std::weak_ptr<WeightStore>> weights;
};

Runtime::Runtime(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
Runtime::~Runtime() = default;
std::unique_ptr<const Runtime> Runtime::share() const { return std::unique_ptr<const Runtime>(new Runtime(parts_)); }

const RuntimeOptions& Runtime::options() const { return parts_->options; }
std::span<const DeviceInfo> Runtime::devices() const { return parts_->infos; }
std::span<Device* const> Runtime::handles() const { return parts_->devices; }
std::span<const std::uint64_t> Runtime::budgets() const { return parts_->budgets; }
std::span<const DeviceCost> Runtime::costs() const { return parts_->costs; }
std::span<const std::string> Runtime::warnings() const { return parts_->warnings; }
std::span<const DeviceRejection> Runtime::rejections() const { return parts_->rejections; }
const Registry& Runtime::registry() const { return *parts_->registry; }
trace::Recorder& Runtime::recorder() const { return *parts_->recorder; }
trace::Recording Runtime::recording() const { return trace::recording_of(*parts_->recorder); }
void Runtime::clear_recording() const { parts_->recorder->clear(); }

// Opens the devices that the options ask for.
Status Runtime::Parts::open() {
  const Profile profile = profile_for(options, warnings);
  OpenOptions open = open_options();
  // The same as between plans: a prior wins over a measurement only if it promises half the time.
  open.predicted_us = [&](const DeviceInfo& device) {
    const DeviceCost cost(device, profile.find(device));
    return typical_us(cost) * (1 + margin_or_default(std::nullopt, cost.is_measured()));
  };
  if (options.selector) {
    DeviceSelector selector = *options.selector;
    if (!selector.score) selector.score = [&](const DeviceInfo& device) { return -open.predicted_us(device); };
    SHUNT_TRY_ASSIGN(Selected selected, open_selected(selector, open));
    registry = std::make_unique<Registry>(std::move(selected.registry));
    use(std::move(selected.devices));
    rejections = std::move(selected.rejections);
  } else {
    SHUNT_TRY_ASSIGN(Registry opened, open_devices(open));
    registry = std::make_unique<Registry>(std::move(opened));
    SHUNT_TRY_ASSIGN(std::vector<Device*> chosen, select_devices(*registry, options.devices, open.predicted_us));
    use(std::move(chosen));
    rejections = rejections_of(registry->reports(), infos);
  }
  costs = costs_of(devices, profile);
  return {};
}

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  if (options.threads > kMostThreads)
    return fail(Code::invalid,
                fmt::format("{} threads are asked for; at most {} are possible, and 0 takes one per core",
                            options.threads, kMostThreads));
  if (options.selector && !options.devices.empty())
    return fail(Code::invalid, fmt::format("devices are chosen both by name (\"{}\") and by a selector; choose one way",
                                           options.devices));
  const auto parts = std::make_shared<Parts>(options);
  RuntimeOptions& chosen = parts->options;
  if (chosen.devices.empty()) chosen.devices = from_the_environment("SHUNT_DEVICES");
  if (chosen.faults.empty()) chosen.faults = from_the_environment("SHUNT_FAULTS");
  SHUNT_TRY_ASSIGN(parts->faults, faults_from_text(chosen.faults));
  parts->recorder = std::make_unique<trace::Recorder>(options.trace ? kTraceEvents : trace::Recorder::kDefaultCapacity);
  parts->recorder->set_enabled(options.trace);
  // A simulated machine has no measurements.
  if (!chosen.machine.empty()) chosen.calibrated = false;
  SHUNT_TRY(parts->open());
  // Environment variables apply to all runtimes of a program.
  if (const Status faults = check_faults(parts->faults, parts->devices); !faults) {
    if (!options.faults.empty()) return std::unexpected(faults.error());
    parts->warnings.push_back(faults.error().message);
  }
  SHUNT_TRY(parts->set_budgets(options.budgets));
  return std::unique_ptr<Runtime>(new Runtime(parts));
}

Device* Runtime::current(std::size_t device) const {
  const std::scoped_lock lock(parts_->mutex);
  return parts_->current[device];
}

std::shared_ptr<WeightStore> Runtime::weights_of(WeightSource* source) const {
  // Its last user removes it from the table.
  const auto end = [parts = std::weak_ptr(parts_), source](const WeightStore* store) {
    const std::unique_ptr<const WeightStore> ended(store);
    const std::shared_ptr<Parts> its = parts.lock();
    if (its == nullptr) return;
    const std::scoped_lock lock(its->mutex);
    const auto kept = its->weights.find(source);
    if (kept != its->weights.end() && kept->second.expired()) its->weights.erase(kept);
  };
  auto made = std::make_unique<WeightStore>(source);
  std::shared_ptr<WeightStore> store(made.release(), end);
  const std::scoped_lock lock(parts_->mutex);
  std::weak_ptr<WeightStore>& kept = parts_->weights[source];
  if (auto known = kept.lock()) return known;
  kept = store;
  return store;
}

Result<Device*> Runtime::revive(std::size_t device) const {
  const std::scoped_lock lock(parts_->mutex);
  Device*& current = parts_->current[device];
  if (current->health().status) return current;
  for (const BackendReport& backend : parts_->registry->backends)
    for (const std::unique_ptr<Device>& opened : backend.devices) {
      if (opened.get() != parts_->devices[device]) continue;
      const auto api = std::ranges::find(api_rows(), backend.api, &ApiRow::name);
      SHUNT_TRY_ASSIGN(std::unique_ptr<Device> anew, open_anew(*api, *current, parts_->open_options()));
      parts_->revived.push_back(std::move(anew));
      return current = parts_->revived.back().get();
    }
  return fail(Code::unsupported, fmt::format("{} cannot be opened again", current->info().id));
}

Status Runtime::Parts::set_budgets(const std::map<std::string, std::uint64_t>& named) {
  for (const auto& [id, bytes] : named)
    if (std::ranges::none_of(devices, [&](const Device* device) { return device->info().id == id; }))
      return fail(Code::invalid, fmt::format("a budget names \"{}\", which is not among the devices in use", id));
  budgets = budgets_of(devices, named);
  return {};
}

std::unique_ptr<Runtime> Runtime::over(Registry registry, std::unique_ptr<trace::Recorder> recorder,
                                       const RuntimeOptions& options) {
  const auto parts = std::make_shared<Parts>(options);
  parts->recorder = std::move(recorder);
  parts->registry = std::make_unique<Registry>(std::move(registry));
  parts->use(parts->registry->devices());
  parts->budgets = budgets_of(parts->devices, {});
  parts->costs = costs_of(parts->devices, profile_for(options, parts->warnings));
  return std::unique_ptr<Runtime>(new Runtime(parts));
}

}  // namespace shunt
