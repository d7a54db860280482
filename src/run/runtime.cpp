#include "shunt/runtime.h"

#include "run/opened_devices.h"
#include "trace/recorder.h"
#include "trace/recording.h"

namespace shunt {

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  SHUNT_TRY_ASSIGN(std::shared_ptr<OpenedDevices> devices, OpenedDevices::create(options));
  return std::unique_ptr<Runtime>(new Runtime(std::move(devices)));
}

Runtime::Runtime(std::shared_ptr<OpenedDevices> opened) : opened_(std::move(opened)) {}
Runtime::~Runtime() = default;
std::unique_ptr<const Runtime> Runtime::share() const { return std::unique_ptr<const Runtime>(new Runtime(opened_)); }

const RuntimeOptions& Runtime::options() const { return opened_->options(); }
std::span<const DeviceInfo> Runtime::devices() const { return opened_->infos(); }
std::span<const std::uint64_t> Runtime::budgets() const { return opened_->budgets(); }
std::span<const std::string> Runtime::warnings() const { return opened_->warnings(); }
std::span<const DeviceRejection> Runtime::rejections() const { return opened_->rejections(); }
trace::Recording Runtime::recording() const { return trace::recording_of(opened_->recorder()); }
void Runtime::clear_recording() const { opened_->recorder().clear(); }

}  // namespace shunt
