#include "devices/cuda/context.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/system/task_queue.h"
#include "base/system/thread_pool.h"
#include "devices/waiting.h"

namespace shunt::cuda {
namespace {

constexpr std::uint64_t kLeastBytes = 16;  // allocating zero bytes is an error
// From this size on, pinned memory is our own, in huge pages: registering it takes less time than the driver takes to
// allocate some.
constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20U;
constexpr std::align_val_t kHugePage{kHugePageBytes};
// To wait for work that uses what is kept, and should end by itself.
constexpr std::chrono::seconds kKeptPatience{1};

// Writes to each page, so that the system provides it now: by several threads, because it clears pages slowly.
void touch(std::span<std::byte> memory) {
  constexpr std::size_t kPageBytes = 4096;  // where the system has no huge pages to give
  const std::size_t shares = (memory.size() + kHugePageBytes - 1) / kHugePageBytes;
  TaskQueue::Batch touches(shares, [memory](std::size_t share) {
    const std::size_t end = std::min(memory.size(), (share + 1) * kHugePageBytes);
    for (std::size_t at = share * kHugePageBytes; at < end; at += kPageBytes) memory[at] = {};
  });
  TaskQueue queue(static_cast<std::uint32_t>(std::min<std::size_t>(shares, usable_cores()) - 1));
  queue.start(touches);
  queue.wait(touches);
}

// Returns null if the system or the driver refuses.
void* register_huge_pages(const Context& owner, std::uint64_t bytes) {
  const auto free = [](void* memory) { ::operator delete(memory, kHugePage); };
  std::unique_ptr<void, decltype(free)> memory(::operator new(bytes, kHugePage, std::nothrow), free);
  if (memory == nullptr) return nullptr;
  static_cast<void>(madvise(memory.get(), bytes, MADV_HUGEPAGE));
  touch({static_cast<std::byte*>(memory.get()), bytes});
  const bool is_registered = owner.call().host_register(memory.get(), bytes, 0) == kSuccess;
  return is_registered ? memory.release() : nullptr;
}

}  // namespace

Result<std::shared_ptr<Context>> Context::create(std::shared_ptr<const Driver> driver, int ordinal) {
  std::shared_ptr<Context> context(new Context);
  context->driver_ = std::move(driver);
  const DriverFunctions& call = context->call();
  SHUNT_TRY(check(call.device(&context->device_, ordinal), fmt::format("device {}", ordinal)));
  SHUNT_TRY_ASSIGN(context->gpu_, gpu_of(context->driver(), context->device_));
  SHUNT_TRY(check(call.context_retain(&context->context_, context->device_), "its context"));
  context->enter();
  const auto create = [&](StreamHandle& stream, int priority, std::string_view what) {
    return check(call.stream_create(&stream, kStreamNonBlocking, priority), what);
  };
  SHUNT_TRY(create(context->stream_, kUsualPriority, "its stream"));
  for (StreamHandle& stream : context->upload_streams_) SHUNT_TRY(create(stream, kHighPriority, "a stream of uploads"));
  SHUNT_TRY(create(context->download_stream_, kHighPriority, "a stream of downloads"));
  SHUNT_TRY(create(context->peer_stream_, kHighPriority, "a stream of copies from other devices"));
  SHUNT_TRY(check(call.event_create(&context->ordered_, kEventWithoutTime), "an event of copies"));
  context->has_pool_ =
      call.pool_allocate != nullptr && context->attribute(context->driver().api().attributes.memory_pools) > 0;
  // The driver takes long to set its pool up, 12 ms on one H200, and would while weights are loaded.
  SHUNT_TRY_ASSIGN(const Address first, context->allocate(kLeastBytes));
  context->free(first);
  return context;
}

Context::~Context() {
  if (context_ == nullptr) return;
  enter();
  if (stream_ != nullptr) {
    if (parameters_ != 0) free(parameters_);
    if (!kept_.empty()) poll_patiently(kKeptPatience, [this] { return is_idle(); });
    destroy_kept();
    // Work that still runs keeps its memory until the process ends.
    if (!trusted_ && !is_idle()) return;
    for (const EventHandle event : {ordered_, last_write_})
      if (event != nullptr) static_cast<void>(call().event_destroy(event));
    for (const StreamHandle stream : upload_streams_)
      if (stream != nullptr) static_cast<void>(call().stream_destroy(stream));
    for (const StreamHandle stream : {download_stream_, peer_stream_})
      if (stream != nullptr) static_cast<void>(call().stream_destroy(stream));
    static_cast<void>(call().stream_destroy(stream_));
  }
  static_cast<void>(call().context_release(device_));
}

bool Context::is_idle() const {
  const auto is_busy = [this](StreamHandle stream) {
    return stream != nullptr && call().stream_query(stream) == kNotReady;
  };
  return !is_busy(stream_) && !is_busy(download_stream_) && !is_busy(peer_stream_) &&
         std::ranges::none_of(upload_streams_, is_busy);
}

Status Context::order(StreamHandle first, StreamHandle second) {
  SHUNT_TRY(check(call().event_record(ordered_, first), "recording an event of copies"));
  return check(call().stream_wait(second, ordered_, 0), "waiting beside copies");
}

Status Context::delay_uploads_to_new_buffers() {
  if (!std::exchange(has_new_buffers_, false)) return {};
  for (const StreamHandle stream : upload_streams_) SHUNT_TRY(order(stream_, stream));
  return {};
}

Status Context::delay_peers_to_new_buffers() {
  return std::exchange(has_new_buffers_for_peers_, false) ? order(stream_, peer_stream_) : Status();
}

Status Context::mark_write() {
  if (last_write_ == nullptr)
    SHUNT_TRY(check(call().event_create(&last_write_, kEventWithoutTime), "an event of writes"));
  return check(call().event_record(last_write_, stream_), "recording an event of writes");
}

Status Context::wait_for_writes(const Context& peer) const {
  return check(call().stream_wait(peer_stream_, peer.last_write_, 0), "waiting for another device");
}

bool Context::can_read_from(int device) const {
  const DriverFunctions& driver = call();
  int can = 0;
  return has_pool_ && driver.default_pool != nullptr && driver.pool_share != nullptr &&
         driver.can_access_peer != nullptr && driver.can_access_peer(&can, device_, device) == kSuccess && can != 0;
}

Status Context::share_with(int device) {
  if (std::ranges::find(readers_, device) != readers_.end()) return {};
  if (!has_pool_) return fail(Code::unsupported, "its memory comes from no pool");
  PoolHandle pool = nullptr;
  SHUNT_TRY(check(call().default_pool(&pool, device_), "the pool of its memory"));
  const PoolAccess access{.device = device};
  SHUNT_TRY(check(call().pool_share(pool, &access, 1), "sharing its memory with another device"));
  readers_.push_back(device);
  return {};
}

std::optional<std::uint64_t> Context::memory_available() {
  std::size_t available = 0;
  std::size_t total = 0;
  enter();
  destroy_kept();
  if (call().memory_info(&available, &total) != kSuccess) return std::nullopt;
  return available;
}

Result<Address> Context::allocate(std::uint64_t bytes) {
  const auto try_to = [&]() -> Result<Address> {
    Address memory = 0;
    SHUNT_TRY(check(has_pool_ ? call().pool_allocate(&memory, bytes, stream_) : call().memory_allocate(&memory, bytes),
                    "memory"));
    return memory;
  };
  enter();
  auto memory = try_to();
  if (memory || memory.error().code != Code::out_of_memory || kept_.empty()) return memory;
  poll_patiently(kKeptPatience, [this] { return is_idle(); });
  destroy_kept();
  return try_to();
}

void Context::reserve(std::uint64_t bytes) {
  if (!has_pool_ || call().pool_free == nullptr) return;
  enter();
  // The pool keeps what is freed in the order of the stream until the host waits for it.
  Address memory = 0;
  if (call().pool_allocate(&memory, bytes, stream_) == kSuccess) static_cast<void>(call().pool_free(memory, stream_));
}

void Context::free(Address memory) {
  const auto destroy = [memory](const DriverFunctions& call) { static_cast<void>(call.memory_free(memory)); };
  end(destroy, !has_pool_);
}

void Context::destroy_kept() {
  if (kept_.empty() || !is_idle()) return;
  for (const auto& destroy : kept_) destroy(call());
  kept_.clear();
}

void Context::end(std::function<void(const DriverFunctions&)> destroy, bool waits) {
  enter();
  destroy_kept();
  if ((waits && trusted_) || is_idle())
    destroy(call());
  else
    kept_.push_back(std::move(destroy));
}

Result<Address> Context::parameters() {
  if (parameters_ == 0) {
    SHUNT_TRY_ASSIGN(parameters_, allocate(sizeof(Parameters)));
  }
  return parameters_;
}

Status Context::write_parameters(const Parameters& parameters, std::span<std::byte> pinned) {
  if (written_ && std::memcmp(&*written_, &parameters, sizeof(parameters)) == 0) return {};
  written_.reset();
  const void* from = &parameters;
  if (!copies_inline()) from = std::memcpy(pinned.data(), &parameters, sizeof(parameters));
  SHUNT_TRY(check(call().copy_to_device(parameters_, from, sizeof(parameters), stream_), "copying parameters"));
  written_ = parameters;
  return {};
}

Result<std::shared_ptr<CudaBuffer>> Context::scratch(std::uint64_t bytes) {
  std::shared_ptr<CudaBuffer> held = scratch_.lock();
  if (held != nullptr && held->bytes() >= bytes) return held;
  SHUNT_TRY_ASSIGN(held, CudaBuffer::create(shared_from_this(), bytes));
  scratch_ = held;
  return held;
}

Result<std::unique_ptr<Mark>> Mark::create(std::shared_ptr<Context> context) {
  std::unique_ptr<Mark> mark(new Mark(std::move(context)));
  SHUNT_TRY(check(mark->context_->call().event_create(&mark->event_, kEventWithoutTime), "an event"));
  return mark;
}

Mark::~Mark() {
  if (event_ == nullptr) return;
  context_->end([event = event_](const DriverFunctions& call) { static_cast<void>(call.event_destroy(event)); });
}

Result<std::unique_ptr<CudaBuffer>> CudaBuffer::create(std::shared_ptr<Context> context, std::uint64_t bytes) {
  std::unique_ptr<CudaBuffer> buffer(new CudaBuffer(std::move(context), bytes));
  Context& owner = *buffer->context_;
  // Kernels read words of 16 bytes whole.
  const std::uint64_t real_bytes = std::max(kLeastBytes, (bytes + 15) / 16 * 16);
  SHUNT_TRY_ASSIGN(buffer->address_, owner.allocate(real_bytes));
  SHUNT_TRY(check(owner.call().fill(buffer->address_, 0, real_bytes, owner.stream()), "clearing memory"));
  owner.note_new_buffer();
  return buffer;
}

CudaBuffer::~CudaBuffer() {
  if (address_ != 0) context_->free(address_);
}

Result<std::shared_ptr<PinnedMemory>> PinnedMemory::create(std::shared_ptr<Context> context, std::uint64_t bytes) {
  std::shared_ptr<PinnedMemory> pinned(new PinnedMemory(std::move(context)));
  const Context& owner = *pinned->context_;
  owner.enter();
  void* memory = bytes < kHugePageBytes ? nullptr : register_huge_pages(owner, bytes);
  pinned->is_registered_ = memory != nullptr;
  if (memory == nullptr)
    SHUNT_TRY(check(owner.call().host_allocate(&memory, bytes, 0), fmt::format("{} bytes of pinned memory", bytes)));
  pinned->bytes_ = {static_cast<std::byte*>(memory), bytes};
  return pinned;
}

PinnedMemory::~PinnedMemory() {
  if (bytes_.empty()) return;
  const auto destroy = [memory = bytes_.data(), is_registered = is_registered_](const DriverFunctions& call) {
    if (is_registered) {
      static_cast<void>(call.host_unregister(memory));
      ::operator delete(memory, kHugePage);
    } else {
      static_cast<void>(call.host_free(memory));
    }
  };
  context_->end(destroy, !is_registered_);
}

Result<std::unique_ptr<Pinned>> Pinned::create(std::shared_ptr<Context> context, std::uint64_t bytes) {
  SHUNT_TRY_ASSIGN(std::shared_ptr<PinnedMemory> memory, PinnedMemory::create(context, bytes));
  const std::span<std::byte> all = memory->bytes();
  return create(std::move(context), std::move(memory), all);
}

Result<std::unique_ptr<Pinned>> Pinned::create(std::shared_ptr<Context> context, std::shared_ptr<PinnedMemory> all,
                                               std::span<std::byte> part) {
  SHUNT_TRY_ASSIGN(std::unique_ptr<Mark> mark, Mark::create(context));
  return std::unique_ptr<Pinned>(new Pinned(std::move(context), std::move(all), part, std::move(mark)));
}

}  // namespace shunt::cuda
