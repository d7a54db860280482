#include "shunt/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "devices/registry.h"
#include "devices/thread_pool.h"
#include "plan/cost.h"
#include "plan/planner.h"
#include "trace/recorder.h"
#include "trace/recording.h"

namespace shunt {
namespace {

// Of an event for each op of a model, some hundred a step, this keeps some hundred steps: 16 MiB.
constexpr std::size_t kTraceEvents = 1U << 18U;

// Of a device's free memory; drivers keep some for programs and their own.
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

// What was measured of this machine, if that counts.
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

// Devices in place of those that were lost, which stay for what still holds memory of theirs.
struct Runtime::Revived {
  FaultTable faults;
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> current;  // one per device
};

Runtime::Runtime(const RuntimeOptions& options) : options_(options), revived_(std::make_unique<Revived>()) {}
Runtime::~Runtime() = default;

OpenOptions Runtime::open_options() const {
  return {.devices = options_.devices,
          .machine = options_.machine,
          .threads = options_.threads,
          .pin_to_cpus = options_.pin_to_cpus,
          .recorder = recorder_.get(),
          .known = {},
          .faults = revived_->faults};
}

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  if (options.threads > kMostThreads)
    return fail(Code::invalid,
                fmt::format("{} threads are asked for; at most {} are possible, and 0 takes one per core",
                            options.threads, kMostThreads));
  std::unique_ptr<Runtime> runtime(new Runtime(options));
  RuntimeOptions& chosen = runtime->options_;
  if (chosen.devices.empty()) chosen.devices = from_the_environment("SHUNT_DEVICES");
  if (chosen.faults.empty()) chosen.faults = from_the_environment("SHUNT_FAULTS");
  SHUNT_TRY_ASSIGN(runtime->revived_->faults, faults_from_text(chosen.faults));
  runtime->recorder_ =
      std::make_unique<trace::Recorder>(options.trace ? kTraceEvents : trace::Recorder::kDefaultCapacity);
  runtime->recorder_->set_enabled(options.trace);
  // Nobody measures a machine that does not exist.
  if (!chosen.machine.empty()) chosen.calibrated = false;
  const Profile profile = profile_for(chosen, runtime->warnings_);
  OpenOptions open = runtime->open_options();
  // As between plans, a guess takes the place of a measurement only where it promises half the time.
  open.predicted_us = [&](const DeviceInfo& device) {
    const DeviceCost cost(device, profile.find(device));
    return typical_us(cost) * (1 + margin_or_default(std::nullopt, cost.is_measured()));
  };
  if (options.selector) {
    DeviceSelector selector = *options.selector;
    if (!selector.score) selector.score = [&](const DeviceInfo& device) { return -open.predicted_us(device); };
    SHUNT_TRY_ASSIGN(Selected selected, open_selected(selector, open));
    runtime->registry_ = std::make_unique<Registry>(std::move(selected.registry));
    runtime->devices_ = std::move(selected.devices);
    runtime->rejections_ = std::move(selected.rejections);
  } else {
    SHUNT_TRY_ASSIGN(Registry registry, open_devices(open));
    runtime->registry_ = std::make_unique<Registry>(std::move(registry));
    SHUNT_TRY_ASSIGN(runtime->devices_, select_devices(*runtime->registry_, chosen.devices, open.predicted_us));
  }
  // The environment speaks to all of a program's runtimes.
  if (const Status faults = check_faults(runtime->revived_->faults, runtime->devices_); !faults) {
    if (!options.faults.empty()) return std::unexpected(faults.error());
    runtime->warnings_.push_back(faults.error().message);
  }
  runtime->revived_->current = runtime->devices_;
  SHUNT_TRY(runtime->set_budgets(options.budgets));
  runtime->costs_ = costs_of(runtime->devices_, profile);
  return runtime;
}

Device* Runtime::current(std::size_t device) const {
  const std::scoped_lock lock(revived_->mutex);
  return revived_->current[device];
}

Result<Device*> Runtime::revive(std::size_t device) const {
  const std::scoped_lock lock(revived_->mutex);
  Device*& current = revived_->current[device];
  if (current->health().status) return current;
  for (const BackendReport& backend : registry_->backends)
    for (const std::unique_ptr<Device>& opened : backend.devices) {
      if (opened.get() != devices_[device]) continue;
      const auto api = std::ranges::find(api_rows(), backend.api, &ApiRow::name);
      SHUNT_TRY_ASSIGN(std::unique_ptr<Device> anew, open_anew(*api, *current, open_options()));
      revived_->owned.push_back(std::move(anew));
      return current = revived_->owned.back().get();
    }
  return fail(Code::unsupported, fmt::format("{} cannot be opened anew", current->info().id));
}

Status Runtime::set_budgets(const std::map<std::string, std::uint64_t>& budgets) {
  for (const auto& [id, bytes] : budgets)
    if (std::ranges::none_of(devices_, [&](const Device* device) { return device->info().id == id; }))
      return fail(Code::invalid, fmt::format("a budget names \"{}\", which is none of the devices in use", id));
  budgets_ = budgets_of(devices_, budgets);
  return {};
}

void Runtime::set_costs() { costs_ = costs_of(devices_, profile_for(options_, warnings_)); }

trace::Recording Runtime::recording() const { return trace::recording_of(*recorder_); }
void Runtime::clear_recording() const { recorder_->clear(); }

std::span<const DeviceCost> Runtime::costs() const { return costs_; }

std::unique_ptr<Runtime> Runtime::over(Registry registry, std::unique_ptr<trace::Recorder> recorder,
                                       const RuntimeOptions& options) {
  std::unique_ptr<Runtime> runtime(new Runtime(options));
  runtime->recorder_ = std::move(recorder);
  runtime->registry_ = std::make_unique<Registry>(std::move(registry));
  runtime->devices_ = runtime->registry_->devices();
  runtime->revived_->current = runtime->devices_;
  runtime->budgets_ = budgets_of(runtime->devices_, {});
  runtime->set_costs();
  return runtime;
}

}  // namespace shunt
