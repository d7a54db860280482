#include "devices/cuda/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace shunt::cuda {
namespace {

constexpr std::uint64_t kLeastBytes = 16;  // allocating zero bytes is an error

// Returns CudaGpu::capability of an NVIDIA GPU: its own, or an earlier one that the environment names, so that a new
// GPU can try kernels of older ones.
std::uint32_t nvidia_capability(std::uint32_t own) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  const char* const text = std::getenv("SHUNT_CUDA_TARGET");
  const auto named = text == nullptr ? 0 : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  return named == 0 ? own : std::min(own, named);
}

// The same of AMD's, by the first digits of their gfx numbers: gfx9 that there are code objects for have MFMA, and
// gfx11 have WMMA.
std::uint32_t amd_capability(std::uint32_t gfx) { return gfx == 9 || gfx == 11 ? 80 : 0; }

}  // namespace

Result<std::shared_ptr<Context>> Context::create(std::shared_ptr<const Driver> driver, int ordinal) {
  std::shared_ptr<Context> context(new Context);
  context->driver_ = std::move(driver);
  const DriverFunctions& call = context->call();
  SHUNT_TRY(check(call.device(&context->device_, ordinal), fmt::format("device {}", ordinal)));
  SHUNT_TRY(check(call.context_retain(&context->context_, context->device_), "its context"));
  const AttributeNumbers& numbers = context->driver().api().attributes;
  const auto number = [&](int attribute) {
    return static_cast<std::uint32_t>(std::max(0, context->attribute(attribute)));
  };
  context->gpu_.multiprocessors = number(numbers.compute_units);
  context->gpu_.shared_bytes = number(numbers.most_shared_memory_bytes);
  context->gpu_.takes_ptx = context->driver().takes_ptx();
  const std::uint32_t major = number(numbers.capability_major);
  context->gpu_.capability = context->gpu_.takes_ptx ? nvidia_capability(major * 10 + number(numbers.capability_minor))
                                                     : amd_capability(major);
  context->enter();
  SHUNT_TRY(check(call.stream_create(&context->stream_, kStreamNonBlocking), "its stream"));
  SHUNT_TRY(check(call.stream_create(&context->upload_stream_, kStreamNonBlocking), "its stream of uploads"));
  SHUNT_TRY(check(call.event_create(&context->uploaded_, kEventWithoutTime), "an event of uploads"));
  return context;
}

Context::~Context() {
  if (context_ == nullptr) return;
  enter();
  if (stream_ != nullptr) {
    // Work that still runs keeps its memory until the process ends.
    if (!is_idle()) return;
    for (const auto& destroy : kept_) destroy(call());
    if (uploaded_ != nullptr) static_cast<void>(call().event_destroy(uploaded_));
    if (upload_stream_ != nullptr) static_cast<void>(call().stream_destroy(upload_stream_));
    static_cast<void>(call().stream_destroy(stream_));
  }
  static_cast<void>(call().context_release(device_));
}

int Context::attribute(int number) const {
  int value = 0;
  return call().device_attribute(&value, number, device_) == kSuccess ? value : 0;
}

bool Context::is_idle() const {
  if (trusted_) return true;
  const auto is_done = [this](StreamHandle stream) { return call().stream_query(stream) != kNotReady; };
  return is_done(stream_) && (upload_stream_ == nullptr || is_done(upload_stream_));
}

Status Context::wait_for_uploads() {
  SHUNT_TRY(check(call().event_record(uploaded_, upload_stream_), "recording an event of uploads"));
  return check(call().stream_wait(stream_, uploaded_, 0), "waiting for uploads");
}

void Context::end(std::function<void(const DriverFunctions&)> destroy) {
  enter();
  if (is_idle())
    destroy(call());
  else
    kept_.push_back(std::move(destroy));
}

Result<std::unique_ptr<CudaBuffer>> CudaBuffer::create(std::shared_ptr<Context> context, std::uint64_t bytes) {
  std::unique_ptr<CudaBuffer> buffer(new CudaBuffer(std::move(context), bytes));
  const Context& owner = *buffer->context_;
  owner.enter();
  // Kernels read words of 16 bytes whole.
  const std::uint64_t real_bytes = std::max(kLeastBytes, (bytes + 15) / 16 * 16);
  SHUNT_TRY(check(owner.call().memory_allocate(&buffer->address_, real_bytes), "memory"));
  SHUNT_TRY(check(owner.call().fill(buffer->address_, 0, real_bytes, owner.stream()), "clearing memory"));
  return buffer;
}

CudaBuffer::~CudaBuffer() {
  if (address_ == 0) return;
  context_->end([address = address_](const DriverFunctions& call) { static_cast<void>(call.memory_free(address)); });
}

Result<std::unique_ptr<Pinned>> Pinned::create(std::shared_ptr<Context> context, std::uint64_t bytes) {
  std::unique_ptr<Pinned> pinned(new Pinned(std::move(context)));
  const Context& owner = *pinned->context_;
  owner.enter();
  void* memory = nullptr;
  SHUNT_TRY(check(owner.call().host_allocate(&memory, bytes, 0), fmt::format("{} bytes of pinned memory", bytes)));
  pinned->memory_ = {static_cast<std::byte*>(memory), bytes};
  SHUNT_TRY(check(owner.call().event_create(&pinned->event_, kEventWithoutTime), "an event"));
  return pinned;
}

Pinned::~Pinned() {
  if (memory_.empty()) return;
  context_->end([memory = memory_.data(), event = event_](const DriverFunctions& call) {
    if (event != nullptr) static_cast<void>(call.event_destroy(event));
    static_cast<void>(call.host_free(memory));
  });
}

Status Pinned::delay_uploads() const {
  return check(context_->call().stream_wait(context_->upload_stream(), event_, 0), "delaying uploads");
}

Status Pinned::mark() { return check(context_->call().event_record(event_, context_->stream()), "recording an event"); }

}  // namespace shunt::cuda
