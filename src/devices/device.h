// The device contract: what a backend implements, and all that the planner and the executor know of a device.
//
// A device computes and has memory. Its calls, in the usual order:
//   info       identity, compute resource, memory pool and limits
//   supports   whether it can run these ops on these operands, or the reason why not
//   kernels_for, choose_kernels
//              which kernels could run an op, if there are several, and which of them measurements prefer
//   allocate   makes a Buffer of its memory; write, read and copy move bytes and return an Event
//   upload     moves weights there, piece by piece, while the caller reads the next ones (upload.h)
//   prepare    turns a run of ops with bound buffers into a Program: fuses, records, captures, compiles
//   submit     starts a Program with one small parameter block; at most one submission of a Program at a time
//   prefetch   is told which Program will be submitted next, while the device waits for others
//   advance    lends the caller's thread to a device that has none of its own
//   health     whether it still answers, and the epoch of its handles
// The core checks all input first: a backend may assume valid operands, offsets inside buffers, and buffers of its own.
// Errors that a caller cannot foresee are out_of_memory, device_lost, timed_out and internal; those of a submission may
// surface in its Event instead. Numbers are IEEE 754, rounded to nearest; subnormals may be read and written as zero.
// Threads: info, supports, layout_for, kernels_for and health are safe from any thread, but not beside choose_kernels.
// All else, including destructors and Event::wait(), is one call at a time per device.
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
#include "ops/arithmetic.h"
#include "ops/kernel_choice.h"
#include "ops/layout.h"
#include "ops/op.h"
#include "shunt/devices.h"

namespace shunt {

// The memory pool of this machine's processor; every other pool has a link to it.
inline constexpr std::string_view kHostPool = "host";

struct Support {
  std::string reason;                      // empty: supported
  std::uint64_t scratch_bytes = 0;         // upper bound on what a program of these ops needs besides its bindings
  std::uint64_t shared_scratch_bytes = 0;  // of these, what other programs of the device may use when this one does not
  Arithmetic arithmetic = Arithmetic::f32;  // of products: the least exact that it uses, and the calls' numerics allow
  ChosenKernel kernel = {};                 // that runs the last of the ops, in the layout of layout_for()
  explicit operator bool() const { return reason.empty(); }
};

enum class BufferUse : std::uint8_t { values, weights, state };
// The access that a device has to pinned memory of the host.
enum class HostAccess : std::uint8_t { reads, reads_and_writes };

// Memory of one device, freed with the object. REQUIRES: submissions that use it have ended before it is destroyed.
class Buffer {
 public:
  virtual ~Buffer() = default;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  // The memory itself if the host can address it, else empty.
  [[nodiscard]] virtual std::span<std::byte> host() = 0;
};

// A range of a buffer. REQUIRES: offset + bytes <= buffer->bytes(), offset a multiple of the alignment.
struct Binding {
  Buffer* buffer = nullptr;  // null: an optional input that is absent
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  Layout layout = Layout::rows;  // of a weight
};

// Describes the matrix whose rows some bytes are.
struct MatrixRows {
  DType dtype = DType::F32;
  std::uint32_t columns = 0;
};

struct ProgramOp {
  OpCall call;
  std::vector<Binding> inputs;  // one per call.inputs
  Binding output;
  std::string name;              // of the node, for traces and messages
  std::string_view reason;       // why it runs here, for traces; empty: unknown
  double predicted_us = 0;       // 0: unknown
  std::string_view kernel = {};  // one of Device::kernels_for(); empty: the device's choice
};

// A run of ops to prepare. prepare() copies operands and bindings.
struct ProgramRequest {
  std::string name;
  std::span<const ProgramOp> ops;
  double predicted_us = 0;  // 0: unknown
  // The outputs that the host reads afterwards; a device may transfer them early.
  std::span<const Binding> results = {};
  // The most shared scratch memory of the programs that it is prepared with.
  std::uint64_t shared_scratch_bytes = 0;
  std::uint32_t plan = 0;  // the plan it belongs to, for traces
};

class Program {
 public:
  virtual ~Program() = default;
  // Bytes the program holds besides its bindings.
  [[nodiscard]] virtual std::uint64_t scratch_bytes() const = 0;
  // Returns whether the program traces its own submissions and ops (program_trace.h), because it knows their times
  // better than its caller.
  [[nodiscard]] virtual bool records() const { return false; }
  // The time that the op of the last submission took by the device's own clock; nullopt if it does not tell. REQUIRES:
  // that submission was of one op (Submission::op) and has ended well.
  [[nodiscard]] virtual std::optional<std::uint64_t> op_ns() const { return std::nullopt; }
};

struct Submission {
  Parameters parameters;
  std::uint32_t step = 0;  // number for the trace
  bool profile = false;    // time each op, if the program records itself; may split the submission
  // Runs only the op with this number, after those before it. Only for programs that do not record themselves.
  std::optional<std::uint32_t> op;
  // Counts from submit() on the device's own clock (waiting.h has the machine's); when exceeded, the event is
  // timed_out.
  std::optional<std::chrono::nanoseconds> timeout;

  [[nodiscard]] bool includes(std::uint32_t number) const { return !op || *op == number; }
};

// Peak rates of the hardware as its driver reports them. 0: not reported.
struct PeakRates {
  double bytes_per_s = 0;  // of memory
  double flops_per_s = 0;  // of dense products of F16 numbers with F32 sums, where it multiplies matrices, else of F32
};

struct Health {
  Status status;            // device_lost or timed_out after a failure
  std::uint32_t epoch = 0;  // grows when earlier handles become invalid
};

// The time that advance() waits for work elsewhere before it returns the thread.
inline constexpr std::chrono::nanoseconds kPatience = std::chrono::milliseconds(50);

class Upload;

class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  // Free memory of the pool now, in bytes; nullopt if unknown.
  [[nodiscard]] virtual std::optional<std::uint64_t> memory_available() const = 0;
  [[nodiscard]] virtual PeakRates peak() const { return {}; }
  [[nodiscard]] virtual Support supports(std::span<const OpCall> run) const = 0;
  // Returns the layout in which the device reads a weight fastest that is an input of the call. Its programs take that
  // one and rows, but all weights of a call in the same. REQUIRES: supports() accepted the call.
  [[nodiscard]] virtual Layout layout_for(const OpCall& call, std::size_t input) const;
  // Returns the kernels that could run the call with its weights in that layout, the one that the device takes by its
  // own rule first. The default is none, as for a device with one kernel for the call. REQUIRES: as layout_for().
  [[nodiscard]] virtual std::vector<KernelCandidate> kernels_for(const OpCall& call, Layout weights) const;
  // Has supports() and programs prepared from now on take these kernels where they can run a call. The default does
  // nothing.
  virtual void choose_kernels(KernelChoices choices);

  // State buffers start zeroed and, if the API allows, take real memory only where they are touched.
  [[nodiscard]] virtual Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse use) = 0;
  // Makes a buffer over host memory that only programs change. The device holds `owner`, which keeps the memory alive,
  // until nothing on the device reads it, abandoned submissions included. With a null owner the caller keeps it alive;
  // only devices that never abandon a running submission accept that. Errors: unsupported (the default); copy instead.
  [[nodiscard]] virtual Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte> memory,
                                                                    std::shared_ptr<const void> owner);
  // The spans must live until the event is done. A write whose bytes are lost after that fails a later event.
  [[nodiscard]] virtual Event write(const Binding& to, std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual Event read(const Binding& from, std::span<std::byte> to) = 0;
  // Copies from a buffer of another device, which no other thread may be using. What the peer was given before must
  // have ended, but for writes. The default copies what the host can address. Errors: unsupported; copy through the
  // host instead.
  [[nodiscard]] virtual Event copy_from_peer(Device& peer, const Binding& from, const Binding& to);

  // Has the device access so much host memory by itself in copy_weight(), and in read() if it may write there, as long
  // as the result lives. Copies are right without, but slower. The device holds `owner` as in import_host(). Errors:
  // unsupported (the default); those of the driver.
  [[nodiscard]] virtual Result<std::shared_ptr<const void>> pin_host(std::span<const std::byte> memory,
                                                                     HostAccess access,
                                                                     std::shared_ptr<const void> owner);
  // Copies rows of a weight to where a step reads them, laid out as `to` says. It may pass submissions that have not
  // ended, so these must not use that place. The default is copy_from_peer(), for devices that read rows.
  [[nodiscard]] virtual Event copy_weight(Device& peer, const Binding& from, const Binding& to, const MatrixRows& rows);

  // Returns how much of its memory copy_weight() takes besides the places that it copies to.
  [[nodiscard]] virtual std::uint64_t weight_copy_bytes() const { return 0; }

  // Begins to move weights to the device. The default writes each piece.
  [[nodiscard]] virtual Result<std::unique_ptr<Upload>> upload();

  [[nodiscard]] virtual Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) = 0;
  [[nodiscard]] virtual Event submit(Program& program, const Submission& submission) = 0;
  // Returns whether submissions, writes, and reads of memory that the host cannot address run in the order in which
  // they are given, so that none needs to wait for the events of those before. The time of a submission then counts
  // from the end of those before. copy_weight() keeps no order with them, and a read into memory that pin_host() lets
  // the device write keeps it only with what was given before.
  [[nodiscard]] virtual bool runs_in_order() const { return false; }
  // Has an idle device fetch some of what a program will read, which will be submitted soon. Whatever is submitted ends
  // that. The default does nothing.
  virtual void prefetch(const Program& next);

  // Works on pending submissions on the caller's thread, or waits until some have ended: at most `patience` for work
  // done elsewhere. Returns false if nothing here needs the caller; pending events then complete by themselves.
  virtual bool advance(std::chrono::nanoseconds patience) = 0;
  bool advance() { return advance(kPatience); }
  // The current time of the device's clock, with any origin. The default is the machine's clock, trace::now_ns().
  [[nodiscard]] virtual std::uint64_t now_ns() const;
  [[nodiscard]] virtual Health health() const = 0;
};

// Returns the layout of those weights of a call that the device reads fastest in another than rows. REQUIRES:
// supports() accepted the call.
[[nodiscard]] Layout weights_layout(const Device& device, const OpCall& call);

}  // namespace shunt
