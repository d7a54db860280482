#include "shunt/runtime.h"

#include <cstdlib>

#include "devices/registry.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

// Of an event for each op of a model, some hundred a step, this keeps some hundred steps: 14 MiB.
constexpr std::size_t kTraceEvents = 1U << 18U;

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
    return runtime;
  }
  SHUNT_TRY_ASSIGN(Registry registry, open_devices(open));
  runtime->registry_ = std::make_unique<Registry>(std::move(registry));
  SHUNT_TRY_ASSIGN(runtime->devices_, select_devices(*runtime->registry_, devices));
  return runtime;
}

std::unique_ptr<Runtime> Runtime::over(Registry registry, std::unique_ptr<trace::Recorder> recorder) {
  std::unique_ptr<Runtime> runtime(new Runtime);
  runtime->recorder_ = std::move(recorder);
  runtime->registry_ = std::make_unique<Registry>(std::move(registry));
  runtime->devices_ = runtime->registry_->devices();
  return runtime;
}

}  // namespace shunt
