// The functions of shunt/shunt.h for runtimes over shunt/runtime.h and shunt/trace.h.
#include "shunt/runtime.h"

#include "devices.h"
#include "report.h"
#include "shunt/trace.h"
#include "watch.h"

shunt_runtime::shunt_runtime(std::unique_ptr<shunt::Runtime> opened) : runtime(std::move(opened)) {
  for (const shunt::DeviceInfo& device : runtime->devices())
    records.push_back(std::make_unique<shunt::c::DeviceRecord>(device));
}
shunt_runtime::~shunt_runtime() = default;

namespace {

using shunt::Result;
using shunt::Status;
using shunt::c::need;
using shunt::c::refuse;
using shunt::c::report;
using shunt::c::text_or_empty;

Result<shunt::RuntimeOptions> options_of(const shunt_runtime_options& from) {
  shunt::RuntimeOptions options{.threads = from.threads,
                                .devices = text_or_empty(from.devices),
                                .machine = text_or_empty(from.machine),
                                .calibrated = from.uncalibrated == 0,
                                .trace = from.trace != 0,
                                .strict = from.strict != 0,
                                .audit = from.audit,
                                .faults = text_or_empty(from.faults)};
  SHUNT_TRY_ASSIGN(options.budgets, shunt::budgets_from_text(text_or_empty(from.budgets)));
  if (from.timeout_ms != 0) options.timeout = std::chrono::milliseconds(from.timeout_ms);
  if (from.on_notice != nullptr)
    options.on_notice = [tell = from.on_notice, user = from.user](const std::string& text) {
      tell(user, text.c_str());
    };
  if (from.selector != nullptr) {
    SHUNT_TRY_ASSIGN(options.selector, shunt::c::selector_of(*from.selector));
  }
  options.watch = shunt::c::watch_of(from.on_progress, from.user, from.interrupt);
  return options;
}

Result<std::unique_ptr<shunt_runtime>> open(const shunt_runtime_options* options) {
  shunt::RuntimeOptions chosen;
  if (options != nullptr) {
    SHUNT_TRY_ASSIGN(chosen, options_of(*options));
  }
  SHUNT_TRY_ASSIGN(std::unique_ptr<shunt::Runtime> opened, shunt::Runtime::create(chosen));
  return std::make_unique<shunt_runtime>(std::move(opened));
}

}  // namespace

shunt_runtime* shunt_runtime_open(const shunt_runtime_options* options, shunt_error* error) try {
  auto opened = open(options);
  if (!opened) return refuse(opened, error);
  static_cast<void>(report({}, error));
  return opened->release();
}
SHUNT_C_END(error)

void shunt_runtime_close(shunt_runtime* runtime) { const std::unique_ptr<shunt_runtime> ended(runtime); }

size_t shunt_device_count(const shunt_runtime* runtime) {
  return runtime == nullptr ? 0 : runtime->runtime->devices().size();
}
const char* shunt_device_id(const shunt_runtime* runtime, size_t index) {
  return index < shunt_device_count(runtime) ? runtime->runtime->devices()[index].id.c_str() : nullptr;
}
const char* shunt_device_name(const shunt_runtime* runtime, size_t index) {
  return index < shunt_device_count(runtime) ? runtime->runtime->devices()[index].name.c_str() : nullptr;
}

const char* shunt_trace_summary(shunt_runtime* runtime) try {
  if (runtime == nullptr) return nullptr;
  runtime->summary = to_text(summarize(runtime->runtime->recording()));
  return runtime->summary.c_str();
}
SHUNT_C_END(nullptr)

const char* shunt_trace_summary_json(shunt_runtime* runtime) try {
  if (runtime == nullptr) return nullptr;
  runtime->summary_json = to_json(summarize(runtime->runtime->recording()));
  return runtime->summary_json.c_str();
}
SHUNT_C_END(nullptr)

const char* shunt_trace_lines(shunt_runtime* runtime) try {
  if (runtime == nullptr) return nullptr;
  runtime->lines = to_json_lines(runtime->runtime->recording());
  return runtime->lines.c_str();
}
SHUNT_C_END(nullptr)

shunt_code shunt_trace_write(const shunt_runtime* runtime, const char* path, shunt_error* error) try {
  Status status = need(runtime, "the runtime");
  if (status) status = need(path, "the name of the trace's file");
  if (status) status = runtime->runtime->write_trace(path);
  return report(status, error);
}
SHUNT_C_END(error)

void shunt_trace_clear(shunt_runtime* runtime) {
  if (runtime != nullptr) runtime->runtime->clear_recording();
}
