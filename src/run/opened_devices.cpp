#include "run/opened_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/system/thread_pool.h"
#include "devices/discovery/rejections.h"
#include "plan/planner.h"
#include "plan/timeline.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

// With an event for each op of a model, some hundred a step, this keeps some hundred steps: 16 MiB.
constexpr std::size_t kTraceEvents = 1U << 18U;

std::vector<std::uint64_t> budgets_of(std::span<Device* const> devices,
                                      const std::map<std::string, std::uint64_t>& named) {
  std::vector<std::uint64_t> budgets;
  for (const Device* device : devices) {
    const auto found = named.find(device->info().id);
    const auto available = device->info().memory_pool == kHostPool ? std::nullopt : device->memory_available();
    if (found != named.end())
      budgets.push_back(found->second);
    else if (available)
      budgets.push_back(usable_of(*available));
    else
      budgets.push_back(kNoBudget);
  }
  share_least_budgets(devices, budgets);
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

std::string from_the_environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

OpenOptions OpenedDevices::open_options() const {
  return {.devices = options_.devices,
          .machine = options_.machine,
          .threads = options_.threads,
          .pin_to_cpus = options_.pin_to_cpus,
          .recorder = recorder_.get(),
          .known = {},
          .faults = faults_};
}

void OpenedDevices::use(std::vector<Device*> chosen, std::span<Device* const> spares) {
  handles_ = std::move(chosen);
  handles_.insert(handles_.end(), spares.begin(), spares.end());
  spares_ = spares.size();
  for (const Device* device : handles_) infos_.push_back(device->info());
  current_ = handles_;
}

void OpenedDevices::use_measurements(const Profile& profile) {
  for (Device* device : handles_) {
    const DeviceProfile* const measured = profile.find(device->info());
    costs_.emplace_back(device->info(), measured);
    choices_.push_back(measured == nullptr ? KernelChoices() : measured->choices);
    device->choose_kernels(choices_.back());
  }
}

Status OpenedDevices::open(const Profile& profile) {
  OpenOptions open = open_options();
  // The same as between plans: a prior wins over a measurement only if it promises half the time.
  open.predicted_us = [&](const DeviceInfo& device) {
    const DeviceCost cost(device, profile.find(device));
    return typical_us(cost) * (1 + margin_or_default(std::nullopt, cost.is_measured()));
  };
  if (options_.selector) {
    DeviceSelector selector = *options_.selector;
    if (!selector.score) selector.score = [&](const DeviceInfo& device) { return -open.predicted_us(device); };
    SHUNT_TRY_ASSIGN(Selected selected, open_selected(selector, open));
    registry_ = std::make_unique<Registry>(std::move(selected.registry));
    use(std::move(selected.devices), {});
    rejections_ = std::move(selected.rejections);
  } else {
    const IsMeasured is_measured = [&](const DeviceInfo& device) {
      return DeviceCost(device, profile.find(device)).is_measured();
    };
    SHUNT_TRY_ASSIGN(Registry opened, open_devices(open, is_measured));
    registry_ = std::make_unique<Registry>(std::move(opened));
    SHUNT_TRY_ASSIGN(std::vector<Device*> chosen, select_devices(*registry_, options_.devices, open.predicted_us));
    std::vector<Device*> spares;
    if (options_.devices.empty()) spares = spare_devices(*registry_, open.predicted_us, is_measured);
    use(std::move(chosen), spares);
    rejections_ = rejections_of(registry_->reports(), infos_);
  }
  use_measurements(profile);
  return {};
}

Result<std::shared_ptr<OpenedDevices>> OpenedDevices::create(const RuntimeOptions& options) {
  if (options.threads > kMostThreads)
    return fail(Code::invalid,
                fmt::format("{} threads are asked for; at most {} are possible, and 0 takes one per core",
                            options.threads, kMostThreads));
  if (options.selector && !options.devices.empty())
    return fail(Code::invalid, fmt::format("devices are chosen both by name (\"{}\") and by a selector; choose one way",
                                           options.devices));
  std::shared_ptr<OpenedDevices> made(new OpenedDevices(options));
  RuntimeOptions& chosen = made->options_;
  if (chosen.devices.empty()) chosen.devices = from_the_environment("SHUNT_DEVICES");
  if (chosen.faults.empty()) chosen.faults = from_the_environment("SHUNT_FAULTS");
  SHUNT_TRY_ASSIGN(made->faults_, faults_from_text(chosen.faults));
  made->recorder_ = std::make_unique<trace::Recorder>(options.trace ? kTraceEvents : trace::Recorder::kDefaultCapacity);
  made->recorder_->set_enabled(options.trace);
  // A simulated machine has no measurements.
  if (!chosen.machine.empty()) chosen.calibrated = false;
  SHUNT_TRY(made->open(profile_for(chosen, made->warnings_)));
  // Environment variables apply to all runtimes of a program.
  if (const Status faults = check_faults(made->faults_, made->handles_); !faults) {
    if (!options.faults.empty()) return std::unexpected(faults.error());
    made->warnings_.push_back(faults.error().message);
  }
  SHUNT_TRY(made->set_budgets());
  return made;
}

std::unique_ptr<Runtime> OpenedDevices::runtime(Registry registry, std::unique_ptr<trace::Recorder> recorder,
                                                const RuntimeOptions& options, std::size_t spares) {
  std::shared_ptr<OpenedDevices> made(new OpenedDevices(options));
  made->recorder_ = std::move(recorder);
  made->registry_ = std::make_unique<Registry>(std::move(registry));
  const std::vector<Device*> all = made->registry_->devices();
  const std::size_t in_use = all.size() - spares;
  made->use({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(in_use)}, std::span(all).subspan(in_use));
  made->budgets_ = budgets_of(made->handles_, {});
  made->use_measurements(profile_for(options, made->warnings_));
  return std::unique_ptr<Runtime>(new Runtime(std::move(made)));
}

MemoryBudget OpenedDevices::budget(std::size_t device) const {
  return {budgets_[device], !options_.strict && !options_.budgets.contains(infos_[device].id)};
}

Device* OpenedDevices::current(std::size_t device) {
  const std::scoped_lock lock(mutex_);
  return current_[device];
}

std::shared_ptr<WeightStore> OpenedDevices::weights_of(WeightSource* source) {
  // Its last user removes it from the table.
  const auto end = [devices = weak_from_this(), source](const WeightStore* store) {
    const std::unique_ptr<const WeightStore> ended(store);
    const std::shared_ptr<OpenedDevices> its = devices.lock();
    if (its == nullptr) return;
    const std::scoped_lock lock(its->mutex_);
    const auto kept = its->weights_.find(source);
    if (kept != its->weights_.end() && kept->second.expired()) its->weights_.erase(kept);
  };
  auto made = std::make_unique<WeightStore>(source, recorder_.get());
  std::shared_ptr<WeightStore> store(made.release(), end);
  const std::scoped_lock lock(mutex_);
  std::weak_ptr<WeightStore>& kept = weights_[source];
  if (auto known = kept.lock()) return known;
  kept = store;
  return store;
}

Result<Device*> OpenedDevices::revive(std::size_t device) {
  const std::scoped_lock lock(mutex_);
  Device*& current = current_[device];
  if (current->health().status) return current;
  for (const BackendReport& backend : registry_->backends)
    for (const std::unique_ptr<Device>& opened : backend.devices) {
      if (opened.get() != handles_[device]) continue;
      const auto api = std::ranges::find(api_rows(), backend.api, &ApiRow::name);
      SHUNT_TRY_ASSIGN(std::unique_ptr<Device> reopened, reopen_device(*api, *current, open_options()));
      reopened->choose_kernels(choices_[device]);
      revived_.push_back(std::move(reopened));
      return current = revived_.back().get();
    }
  return fail(Code::unsupported, fmt::format("{} cannot be opened again", current->info().id));
}

Status OpenedDevices::set_budgets() {
  for (const auto& [id, bytes] : options_.budgets)
    if (std::ranges::none_of(handles_, [&](const Device* device) { return device->info().id == id; }))
      return fail(Code::invalid, fmt::format("a budget names \"{}\", which is not among the devices in use", id));
  budgets_ = budgets_of(handles_, options_.budgets);
  return {};
}

}  // namespace shunt
