#include "devices/webgpu/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shunt::webgpu {
namespace {

constexpr std::uint64_t kForever = ~std::uint64_t{0};
// The kernel with the most operands binds seven; WebGPU guarantees eight.
constexpr std::uint32_t kStorageBuffers = 10;

// Dawn's messages have several lines.
std::string in_one_line(StringView message) {
  std::string line;
  for (const char character : message.view()) {
    const bool space = character == '\n' || character == ' ';
    if (!space) line += character;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

Status status_of(ErrorType type, StringView message) {
  if (type == ErrorType::none) return {};
  return fail(type == ErrorType::out_of_memory ? Code::out_of_memory : Code::internal, in_one_line(message));
}

void finish(void* outcome, Status status) {
  auto& mine = *static_cast<Outcome*>(outcome);
  --mine.awaited;
  if (mine.status && !status) mine.status = std::move(status);
}

template <class Handle>
struct Answer {
  Handle handle = nullptr;
  std::string refusal;
};
template <class Handle>
void keep_answer(Status32, Handle handle, StringView message, void* answer, void*) {
  *static_cast<Answer<Handle>*>(answer) = {handle, in_one_line(message)};
}

// The limits to request: what kernels and weights can use of the adapter's, else WebGPU's defaults.
Limits wanted_limits(const Limits& adapter) {
  Limits wanted;
  wanted.max_storage_buffers_per_stage = std::min(kStorageBuffers, adapter.max_storage_buffers_per_stage);
  wanted.max_storage_binding_bytes = adapter.max_storage_binding_bytes;
  wanted.max_buffer_bytes = adapter.max_buffer_bytes;
  return wanted;
}

}  // namespace

Result<std::shared_ptr<Context>> Context::create(const Functions& functions, const AdapterChoice& choice) {
  std::shared_ptr<Context> context(new Context(functions));
  InstanceDescriptor descriptor{.timed_wait_any_enable = 1, .timed_wait_any_max_count = 1};
  context->instance_ = functions.CreateInstance(&descriptor);
  if (context->instance_ == nullptr) return fail(Code::unsupported, "Dawn makes no instance");
  SHUNT_TRY(context->request_adapter(choice));
  context->describe_adapter();
  SHUNT_TRY(context->request_device());
  context->queue_ = functions.DeviceGetQueue(context->device_);
  return context;
}

Context::~Context() {
  if (device_ != nullptr) {
    functions_.DeviceDestroy(device_);
    functions_.InstanceProcessEvents(instance_);
  }
  if (queue_ != nullptr) functions_.QueueRelease(queue_);
  if (device_ != nullptr) functions_.DeviceRelease(device_);
  if (adapter_ != nullptr) functions_.AdapterRelease(adapter_);
  if (instance_ != nullptr) functions_.InstanceRelease(instance_);
}

Status Context::request_adapter(const AdapterChoice& choice) {
  const RequestAdapterOptions options{.power_preference = choice.power,
                                      .force_fallback_adapter = choice.fallback ? Bool{1} : Bool{0},
                                      .backend_type = BackendType::vulkan};
  Answer<AdapterHandle> answer;
  wait_for(functions_.InstanceRequestAdapter(instance_, &options,
                                             {.callback = keep_answer<AdapterHandle>, .first = &answer}),
           kForever);
  adapter_ = answer.handle;
  if (adapter_ == nullptr) return fail(Code::unsupported, answer.refusal);
  if (functions_.AdapterGetLimits(adapter_, &limits_) != kSuccess)
    return fail(Code::unsupported, "Dawn does not say the limits of the adapter");
  return {};
}

Status Context::request_device() {
  const Limits wanted = wanted_limits(limits_);
  DeviceDescriptor descriptor{.required_limits = &wanted};
  descriptor.device_lost.first = this;
  descriptor.device_lost.callback = [](const DeviceHandle*, std::uint32_t, StringView message, void* context, void*) {
    static_cast<Context*>(context)->lost_ = fail(Code::device_lost, in_one_line(message));
  };
  descriptor.uncaptured_error.first = this;
  descriptor.uncaptured_error.callback = [](const DeviceHandle*, ErrorType type, StringView message, void* context,
                                            void*) {
    auto& mine = *static_cast<Context*>(context);
    if (mine.stray_) mine.stray_ = status_of(type, message);
  };
  Answer<DeviceHandle> answer;
  wait_for(
      functions_.AdapterRequestDevice(adapter_, &descriptor, {.callback = keep_answer<DeviceHandle>, .first = &answer}),
      kForever);
  device_ = answer.handle;
  if (device_ == nullptr) return fail(Code::unsupported, answer.refusal);
  return {};
}

void Context::describe_adapter() {
  AdapterPropertiesMemoryHeaps heaps{.chain = {nullptr, kTypeOfMemoryHeaps}};
  const bool tells_heaps = functions_.AdapterHasFeature(adapter_, kFeatureMemoryHeaps) != 0;
  AdapterInfo info{.next = tells_heaps ? &heaps.chain : nullptr};
  if (functions_.AdapterGetInfo(adapter_, &info) != kSuccess) return;
  adapter_description_ = {.name = std::string(info.device.view()),
                          .vendor = std::string(info.vendor.view()),
                          .driver = std::string(info.description.view()),
                          .type = info.adapter_type,
                          .vendor_id = info.vendor_id,
                          .device_id = info.device_id};
  for (std::size_t heap = 0; heap < heaps.count; ++heap)
    if ((heaps.heaps[heap].properties & kHeapOfDevice) != 0)
      adapter_description_.memory_bytes = std::max(adapter_description_.memory_bytes, heaps.heaps[heap].bytes);
  if (tells_heaps) functions_.AdapterPropertiesMemoryHeapsFreeMembers(heaps);
  info.next = nullptr;
  functions_.AdapterInfoFreeMembers(info);
}

std::uint64_t Context::largest_binding_bytes() const {
  return std::min(limits_.max_storage_binding_bytes, limits_.max_buffer_bytes);
}

void Context::open_scopes() const {
  for (const ErrorFilter filter : {ErrorFilter::validation, ErrorFilter::out_of_memory, ErrorFilter::internal})
    functions_.DevicePushErrorScope(device_, filter);
}

std::shared_ptr<Outcome> Context::close_scopes() {
  auto outcome = std::make_shared<Outcome>();
  outcomes_.push_back(outcome);
  for (int scope = 0; scope < 3; ++scope) {
    ++outcome->awaited;
    outcome->last = functions_.DevicePopErrorScope(
        device_, {.callback = [](Status32, ErrorType type, StringView message, void* mine,
                                 void*) { finish(mine, status_of(type, message)); },
                  .first = outcome.get()});
  }
  return outcome;
}

void Context::await_work(const std::shared_ptr<Outcome>& outcome) const {
  ++outcome->awaited;
  outcome->last = functions_.QueueOnSubmittedWorkDone(
      queue_, {.callback =
                   [](Status32 status, StringView message, void* mine, void*) {
                     finish(mine, status == kSuccess ? Status{} : fail(Code::internal, in_one_line(message)));
                   },
               .first = outcome.get()});
}

void Context::await_map(const std::shared_ptr<Outcome>& outcome, BufferHandle buffer, std::uint64_t bytes) const {
  ++outcome->awaited;
  outcome->last = functions_.BufferMapAsync(
      buffer, kMapModeRead, 0, bytes,
      {.callback =
           [](Status32 status, StringView message, void* mine, void*) {
             finish(mine, status == kSuccess ? Status{} : fail(Code::internal, in_one_line(message)));
           },
       .first = outcome.get()});
}

void Context::wait_for(Future future, std::uint64_t timeout_ns) const {
  FutureWaitInfo info{future};
  static_cast<void>(functions_.InstanceWaitAny(instance_, 1, &info, timeout_ns));
}

void Context::wait(const Outcome& outcome, std::chrono::nanoseconds patience) {
  wait_for(outcome.last, static_cast<std::uint64_t>(patience.count()));
  functions_.InstanceProcessEvents(instance_);
  std::erase_if(outcomes_, [](const auto& each) { return each->done(); });
}

Status Context::settle(const Outcome& outcome) {
  while (!outcome.done()) wait(outcome, std::chrono::seconds(1));
  return conclude(outcome);
}

Status Context::conclude(const Outcome& outcome) {
  if (!lost_) return lost_;
  if (!outcome.status) return outcome.status;
  return take_stray_error();
}

Status Context::take_stray_error() { return std::exchange(stray_, Status{}); }

}  // namespace shunt::webgpu
