#include "shunt/runtime.h"

#include "devices/registry.h"
#include "trace/recorder.h"

namespace shunt {

Runtime::Runtime() : recorder_(std::make_unique<trace::Recorder>()) {}
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  std::unique_ptr<Runtime> runtime(new Runtime);
  runtime->recorder_->set_enabled(options.trace);
  runtime->registry_ = std::make_unique<Registry>(open_devices(
      {.threads = options.threads, .pin_to_cpus = options.pin_to_cpus, .recorder = runtime->recorder_.get()}));
  SHUNT_TRY_ASSIGN(runtime->devices_, select_devices(*runtime->registry_, options.devices));
  return runtime;
}

}  // namespace shunt
