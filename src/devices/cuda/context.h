// One device behind a driver: its context, its streams and its memory.
//
// Buffers, kernels and programs share it, so that handles live as long as what was made with them. All work goes
// through one stream, in order; only weights arrive on others beside it, which a thread of its own may be giving work,
// bytes leave on one for memory of the host that is pinned, after what came before them only, and bytes of other
// devices arrive on one. All else is for one thread at a time, which enter() binds to the context.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "devices/cuda/gpu.h"
#include "devices/device.h"

namespace shunt::cuda {

class CudaBuffer;

class Context : public std::enable_shared_from_this<Context> {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Context>> create(std::shared_ptr<const Driver> driver, int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const Driver& driver() const { return *driver_; }
  [[nodiscard]] const DriverFunctions& call() const { return driver_->call(); }
  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] StreamHandle stream() const { return stream_; }
  // Their kernels go before those of the other stream. While a kernel of one runs, bytes arrive on the other.
  static constexpr std::size_t kUploadStreams = 2;
  [[nodiscard]] StreamHandle upload_stream(std::size_t number = 0) const { return upload_streams_[number]; }
  // Makes the stream wait for what the first upload stream was given so far.
  [[nodiscard]] Status wait_for_uploads() { return order(upload_stream(), stream_); }
  // Makes the first upload stream wait for what the stream was given so far.
  [[nodiscard]] Status delay_uploads() { return order(stream_, upload_stream()); }
  // Makes all of them wait for buffers that were made since the last call, which the stream clears.
  [[nodiscard]] Status delay_uploads_to_new_buffers();
  // The same for the stream on which bytes of other devices arrive.
  [[nodiscard]] Status delay_peers_to_new_buffers();
  void note_new_buffer() { has_new_buffers_ = has_new_buffers_for_peers_ = true; }
  [[nodiscard]] StreamHandle peer_stream() const { return peer_stream_; }
  // Returns whether the device, by itself, can read what another one of the driver has allocated.
  [[nodiscard]] bool can_read_from(int device) const;
  // Notes that the stream was given a write now.
  [[nodiscard]] Status mark_write();
  // Makes the stream of copies from other devices wait for another one's last write. REQUIRES: that was marked.
  [[nodiscard]] Status wait_for_writes(const Context& peer) const;
  // Lets another device read its memory. REQUIRES: it can.
  [[nodiscard]] Status share_with(int device);
  [[nodiscard]] StreamHandle download_stream() const { return download_stream_; }
  // Makes that stream wait for what the stream was given so far.
  [[nodiscard]] Status delay_downloads() { return order(stream_, download_stream_); }
  // Returns 0 if the device does not answer.
  [[nodiscard]] int attribute(int number) const { return attribute_of(driver(), device_, number); }
  // The properties by which its kernels are chosen.
  [[nodiscard]] const CudaGpu& gpu() const { return gpu_; }

  // Bytes of the device's memory that are free; nullopt if the driver does not tell.
  [[nodiscard]] std::optional<std::uint64_t> memory_available();
  // Allocates memory for work on the stream: packed, where the driver has a pool. Errors: out_of_memory.
  [[nodiscard]] Result<Address> allocate(std::uint64_t bytes);
  // Has the pool get memory for allocations of so many bytes at once, which takes less time than for each. Does nothing
  // without a pool, or where there is not as much.
  void reserve(std::uint64_t bytes);
  // Frees it when the device can no longer be using it.
  void free(Address memory);

  // Returns whether copies of up to kInlineBytes from memory that is not pinned go with the command: the memory is free
  // again when the call returns, and no copy engine, which may be busy with weights, is needed. AMD's driver may wait
  // for all work before instead.
  [[nodiscard]] bool copies_inline() const { return driver().takes_ptx(); }
  static constexpr std::uint64_t kInlineBytes = std::uint64_t{64} << 10U;

  // Returns where all programs read the parameters of their step.
  [[nodiscard]] Result<Address> parameters();
  // Has the stream write them there, unless they are there already. REQUIRES: parameters() was called; the pinned
  // memory is free, and stays so until the stream has passed.
  [[nodiscard]] Status write_parameters(const Parameters& parameters, std::span<std::byte> pinned);
  // Returns scratch memory of at least so many bytes, the counters before it cleared; all programs that ask for it
  // share it, since they run one after the other. Errors: out_of_memory.
  [[nodiscard]] Result<std::shared_ptr<CudaBuffer>> scratch(std::uint64_t bytes);

  // Binds the calling thread to the context.
  void enter() const { static_cast<void>(call().context_enter(context_)); }

  // Call when the stream may run forever: from now on, nothing is freed before its work has ended.
  void distrust() { trusted_ = false; }
  // Runs `destroy` when the device can no longer be using the object: now, later, or never. With `waits`, the driver
  // call that it makes waits for the device by itself.
  void end(std::function<void(const DriverFunctions&)> destroy, bool waits = true);

 private:
  Context() = default;
  // Makes the second stream wait for what the first one was given so far.
  [[nodiscard]] Status order(StreamHandle first, StreamHandle second);
  [[nodiscard]] bool is_idle() const;
  // Destroys what was kept, if the device is idle.
  void destroy_kept();

  std::shared_ptr<const Driver> driver_;
  int device_ = 0;
  CudaGpu gpu_;
  ContextHandle context_ = nullptr;
  StreamHandle stream_ = nullptr;
  std::array<StreamHandle, kUploadStreams> upload_streams_{};
  StreamHandle download_stream_ = nullptr;
  StreamHandle peer_stream_ = nullptr;
  EventHandle ordered_ = nullptr;     // of the last order()
  EventHandle last_write_ = nullptr;  // of the last mark_write()
  bool has_pool_ = false;
  std::vector<int> readers_;  // the devices that it has shared its memory with
  bool has_new_buffers_ = false;
  bool has_new_buffers_for_peers_ = false;
  bool trusted_ = true;
  std::vector<std::function<void(const DriverFunctions&)>> kept_;
  std::weak_ptr<CudaBuffer> scratch_;
  Address parameters_ = 0;
  std::optional<Parameters> written_;  // what is there
};

// An event: a point in the work of a stream.
class Mark {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Mark>> create(std::shared_ptr<Context> context);
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  // Moves it behind everything that the stream was given so far.
  // Returns the driver's answer.
  [[nodiscard]] int record(StreamHandle stream) { return context_->call().event_record(event_, stream); }
  // Returns kSuccess, kNotReady or an error of the device. REQUIRES: record() was called.
  [[nodiscard]] int query() const { return context_->call().event_query(event_); }

 private:
  explicit Mark(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  std::shared_ptr<Context> context_;
  EventHandle event_ = nullptr;
};

// Device memory, zeroed.
class CudaBuffer final : public Buffer {
 public:
  // Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<CudaBuffer>> create(std::shared_ptr<Context> context,
                                                                  std::uint64_t bytes);
  ~CudaBuffer() override;
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::span<std::byte> host() override { return {}; }
  [[nodiscard]] Address address() const { return address_; }

 private:
  CudaBuffer(std::shared_ptr<Context> context, std::uint64_t bytes) : context_(std::move(context)), bytes_(bytes) {}

  std::shared_ptr<Context> context_;
  std::uint64_t bytes_;
  Address address_ = 0;
};

// Host memory that the device copies from and to by itself.
class PinnedMemory {
 public:
  [[nodiscard]] static Result<std::shared_ptr<PinnedMemory>> create(std::shared_ptr<Context> context,
                                                                    std::uint64_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit PinnedMemory(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  std::shared_ptr<Context> context_;
  std::span<std::byte> bytes_;
  bool is_registered_ = false;  // memory of our own, otherwise the driver's
};

// Pinned memory, and a mark for when the device has done with it.
class Pinned {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Pinned>> create(std::shared_ptr<Context> context, std::uint64_t bytes);
  // The same with a part of memory that there is.
  [[nodiscard]] static Result<std::unique_ptr<Pinned>> create(std::shared_ptr<Context> context,
                                                              std::shared_ptr<PinnedMemory> all,
                                                              std::span<std::byte> part);
  [[nodiscard]] std::span<std::byte> memory() const { return memory_; }
  // Moves the mark behind everything that the device's stream was given so far.
  [[nodiscard]] Status mark() { return check(mark_->record(context_->stream()), "recording an event"); }
  // Returns kSuccess, kNotReady or an error of the device. REQUIRES: mark() was called.
  [[nodiscard]] int query() const { return mark_->query(); }

 private:
  Pinned(std::shared_ptr<Context> context, std::shared_ptr<PinnedMemory> all, std::span<std::byte> part,
         std::unique_ptr<Mark> mark)
      : context_(std::move(context)), all_(std::move(all)), memory_(part), mark_(std::move(mark)) {}

  std::shared_ptr<Context> context_;
  std::shared_ptr<PinnedMemory> all_;
  std::span<std::byte> memory_;
  std::unique_ptr<Mark> mark_;
};

}  // namespace shunt::cuda
