#include "shunt/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "devices/registry.h"
#include "plan/cost.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

// Of an event for each op of a model, some hundred a step, this keeps some hundred steps: 14 MiB.
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

std::string named_by_the_environment() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  const char* const list = std::getenv("SHUNT_DEVICES");
  return list == nullptr ? "" : list;
}

}  // namespace

Runtime::Runtime() = default;
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  std::unique_ptr<Runtime> runtime(new Runtime);
  runtime->recorder_ =
      std::make_unique<trace::Recorder>(options.trace ? kTraceEvents : trace::Recorder::kDefaultCapacity);
  runtime->recorder_->set_enabled(options.trace);
  const std::string devices = options.devices.empty() ? named_by_the_environment() : options.devices;
  const OpenOptions open{.devices = devices,
                         .machine = options.machine,
                         .threads = options.threads,
                         .pin_to_cpus = options.pin_to_cpus,
                         .recorder = runtime->recorder_.get(),
                         .known = {}};
  if (options.selector) {
    SHUNT_TRY_ASSIGN(Selected selected, open_selected(*options.selector, open));
    runtime->registry_ = std::make_unique<Registry>(std::move(selected.registry));
    runtime->devices_ = std::move(selected.devices);
    runtime->rejections_ = std::move(selected.rejections);
  } else {
    SHUNT_TRY_ASSIGN(Registry registry, open_devices(open));
    runtime->registry_ = std::make_unique<Registry>(std::move(registry));
    SHUNT_TRY_ASSIGN(runtime->devices_, select_devices(*runtime->registry_, devices));
  }
  SHUNT_TRY(runtime->set_budgets(options.budgets));
  runtime->set_costs(options.calibrated && options.machine.empty());
  return runtime;
}

Status Runtime::set_budgets(const std::map<std::string, std::uint64_t>& budgets) {
  for (const auto& [id, bytes] : budgets)
    if (std::ranges::none_of(devices_, [&](const Device* device) { return device->info().id == id; }))
      return fail(Code::invalid, fmt::format("a budget names \"{}\", which is none of the devices in use", id));
  budgets_ = budgets_of(devices_, budgets);
  return {};
}

void Runtime::set_costs(bool measured) {
  Profile profile;
  if (measured) {
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

std::span<const DeviceCost> Runtime::costs() const { return costs_; }

std::unique_ptr<Runtime> Runtime::over(Registry registry, std::unique_ptr<trace::Recorder> recorder) {
  std::unique_ptr<Runtime> runtime(new Runtime);
  runtime->recorder_ = std::move(recorder);
  runtime->registry_ = std::make_unique<Registry>(std::move(registry));
  runtime->devices_ = runtime->registry_->devices();
  runtime->budgets_ = budgets_of(runtime->devices_, {});
  runtime->set_costs(false);
  return runtime;
}

}  // namespace shunt
