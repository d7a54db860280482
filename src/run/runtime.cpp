#include "shunt/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "devices/registry.h"
#include "devices/thread_pool.h"
#include "plan/cost.h"
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
  if (options.selector) {
    SHUNT_TRY_ASSIGN(Selected selected, open_selected(*options.selector, runtime->open_options()));
    runtime->registry_ = std::make_unique<Registry>(std::move(selected.registry));
    runtime->devices_ = std::move(selected.devices);
    runtime->rejections_ = std::move(selected.rejections);
  } else {
    SHUNT_TRY_ASSIGN(Registry registry, open_devices(runtime->open_options()));
    runtime->registry_ = std::make_unique<Registry>(std::move(registry));
    SHUNT_TRY_ASSIGN(runtime->devices_, select_devices(*runtime->registry_, chosen.devices));
  }
  // The environment speaks to all of a program's runtimes.
  if (const Status faults = check_faults(runtime->revived_->faults, runtime->devices_); !faults) {
    if (!options.faults.empty()) return std::unexpected(faults.error());
    runtime->warnings_.push_back(faults.error().message);
  }
  runtime->revived_->current = runtime->devices_;
  SHUNT_TRY(runtime->set_budgets(options.budgets));
  // Nobody measures a machine that does not exist.
  if (!chosen.machine.empty()) chosen.calibrated = false;
  runtime->set_costs();
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

void Runtime::set_costs() {
  Profile profile;
  if (options_.calibrated) {
    const auto path = profile_path();
    std::string warning;
    auto loaded = path ? load_profile(*path, warning) : Result<Profile>(std::unexpected(path.error()));
    if (loaded)
      profile = std::move(*loaded);
    else if (path)
      warning = loaded.error().message;
    if (!warning.empty()) warnings_.push_back(std::move(warning));
  }
  for (const Device* device : devices_) costs_.emplace_back(device->info(), profile.find(device->info()));
}

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
