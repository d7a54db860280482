// The device contract: what a backend implements, and all that the planner and the executor know of one.
//
// A device computes and has memory. It is asked in this order:
//   info       who it is: compute resource, memory pool and limits, by id
//   supports   can it run these ops on these operands? yes, or the reason in words
//   allocate   a Buffer of its memory; write, read and copy move bytes and end in an Event
//   prepare    turns a run of ops with bound buffers into a Program: fuses, records, captures, compiles
//   submit     starts a Program with one small parameter block; at most one submission of a Program at a time
//   advance    gives a device without threads of its own the caller's thread to work on
//   health     whether it still answers, and the epoch of its handles
// The core checks all input before it calls, so a backend may assume valid operands, offsets inside buffers
// and buffers of its own. Errors that a caller cannot foresee are out_of_memory, device_lost, timed_out and
// internal; those of a submission may surface in its Event instead.
// Numbers are IEEE 754, to nearest; subnormal ones may be read and written as zero.
// Threads: info, supports, health: any. The rest, destructors and Event::wait() too: one at a time per device.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/event.h"
#include "ops/op.h"
#include "shunt/devices.h"

namespace shunt {

// The memory pool of the processor that this program runs on: every other one has a link to it.
inline constexpr std::string_view kHostPool = "host";

struct Support {
  std::string reason;               // empty: yes
  std::uint64_t scratch_bytes = 0;  // what a program of these ops needs besides its bindings, at most
  explicit operator bool() const { return reason.empty(); }
};

enum class BufferUse : std::uint8_t { values, weights, state };

// Memory of one device; freed with the object. Submissions that use it must have ended.
class Buffer {
 public:
  virtual ~Buffer() = default;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  // The memory itself where the host can address it, else empty.
  [[nodiscard]] virtual std::span<std::byte> host() = 0;
};

// A stretch of a buffer. REQUIRES: offset + bytes <= buffer->bytes(), offset a multiple of the alignment.
struct Binding {
  Buffer* buffer = nullptr;  // null: an optional input that is absent
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct ProgramOp {
  OpCall call;
  std::vector<Binding> inputs;  // one per call.inputs
  Binding output;
  std::string name;         // of the node, for traces and messages
  std::string_view reason;  // why it runs here, for traces; empty: unknown
  double predicted_us = 0;  // 0: unknown
};

// What a prepared run of ops does. Operands and bindings are copied by prepare().
struct ProgramRequest {
  std::string name;
  std::span<const ProgramOp> ops;
  double predicted_us = 0;  // 0: unknown
  // Of what the ops make, what the host will read when they are over: a device may bring it along.
  std::span<const Binding> results = {};
  std::uint32_t plan = 0;  // whose part it is, for traces
};

class Program {
 public:
  virtual ~Program() = default;
  // Memory the program holds besides its bindings.
  [[nodiscard]] virtual std::uint64_t scratch_bytes() const = 0;
  // It records its submissions and ops itself (program_trace.h), as one that knows better when they began and ended
  // than whoever waits for them.
  [[nodiscard]] virtual bool records() const { return false; }
};

struct Submission {
  Parameters parameters;
  std::uint32_t step = 0;  // number for the trace
  bool profile = false;    // time each op, of a program that records itself; may split it
  // Of a program that does not record itself, this op alone, by its number, after those before it.
  std::optional<std::uint32_t> op;
  // From submit() on, by the device's own clock (waiting.h has the machine's); timed_out where it takes longer.
  std::optional<std::chrono::nanoseconds> timeout;

  [[nodiscard]] bool includes(std::uint32_t number) const { return !op || *op == number; }
};

struct Health {
  Status status;            // device_lost or timed_out once it failed
  std::uint32_t epoch = 0;  // grows when handles made before became invalid
};

// How long advance() waits for others before it gives the thread back.
inline constexpr std::chrono::nanoseconds kPatience = std::chrono::milliseconds(50);

class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  // Free memory of the pool now, in bytes; nothing where it cannot be known.
  [[nodiscard]] virtual std::optional<std::uint64_t> memory_available() const = 0;
  [[nodiscard]] virtual Support supports(std::span<const OpCall> run) const = 0;

  // State buffers begin zeroed and need real memory only where they are touched, if the API allows.
  [[nodiscard]] virtual Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse use) = 0;
  // A buffer over memory that nothing but programs changes. `owner` keeps it, and the device keeps the owner until
  // nothing of its own reads the memory any more, a submission that nobody waits for included; null: the caller keeps
  // it, and only devices that outlast none of their submissions take it. Errors: unsupported, as here; copy instead.
  [[nodiscard]] virtual Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte> memory,
                                                                    std::shared_ptr<const void> owner);
  // The spans must live until the event is done. Bytes of a write that then do not arrive fail a later event.
  [[nodiscard]] virtual Event write(const Binding& to, std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual Event read(const Binding& from, std::span<std::byte> to) = 0;
  // Copies from a buffer of another device; here what the host can address. Errors: unsupported; go through the host.
  [[nodiscard]] virtual Event copy_from_peer(Device& peer, const Binding& from, const Binding& to);

  [[nodiscard]] virtual Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) = 0;
  [[nodiscard]] virtual Event submit(Program& program, const Submission& submission) = 0;

  // Works on what is pending with the caller's thread, or waits until some of it has ended, and no longer than
  // `patience` for what works elsewhere. False: nothing here needs it; events, if any are pending, complete by
  // themselves.
  virtual bool advance(std::chrono::nanoseconds patience) = 0;
  bool advance() { return advance(kPatience); }
  // The time by which it works, since any origin: that of the machine's clock, and here trace::now_ns().
  [[nodiscard]] virtual std::uint64_t now_ns() const;
  [[nodiscard]] virtual Health health() const = 0;
};

}  // namespace shunt
