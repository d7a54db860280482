// What happened: a bounded ring of events that any thread may write and read while others write.
//
// Recording is a handful of relaxed atomic stores, never a lock or an allocation; when the ring is full the
// oldest events are overwritten. Names are interned beforehand, when programs are prepared. A reader takes a
// snapshot and leaves out events that were being overwritten meanwhile. What is large and rare, such as plans, is
// attached as JSON.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shunt/status.h"

namespace shunt::trace {

// Monotonic nanoseconds.
[[nodiscard]] std::uint64_t now_ns();

// A run is a plan from its start to its end, with programs and transfers in it, and ops in programs. A notice is what
// the user is told meanwhile, such as that a device failed. An audit is an op that was held against the reference, with
// what came before it; it failed where the result was wrong.
#define SHUNT_TRACE_KINDS(X) X(program) X(op) X(transfer) X(run) X(notice) X(audit)

enum class Kind : std::uint8_t {
#define SHUNT_TRACE_KIND(name) name,
  SHUNT_TRACE_KINDS(SHUNT_TRACE_KIND)
#undef SHUNT_TRACE_KIND
};
[[nodiscard]] std::string_view name_of(Kind kind);

using Label = std::uint32_t;

struct ExecutionEvent {
  std::uint64_t start_ns = 0;
  std::uint64_t duration_ns = 0;
  Label what = 0;    // "OP NODE", or the name of the program or transfer
  Label device = 0;  // where it ran; of a transfer where to, of a run none
  Label from = 0;    // of a transfer: the device that it comes from
  Label reason = 0;  // why there; 0: unknown
  Kind kind = Kind::program;
  bool failed = false;
  Code code = Code::internal;  // where failed
  std::uint32_t step = 0;      // submission number
  std::uint32_t plan = 0;      // that it is part of, by its place among those attached; 0: unknown
  float predicted_us = 0;      // 0: no prediction
  std::uint64_t bytes = 0;     // moved by a transfer
};

// JSON texts, as lists by key.
using Attachments = std::map<std::string, std::vector<std::string>, std::less<>>;
inline constexpr std::string_view kPlans = "plans";  // those that ran, as to_json(plan) has them

class Recorder {
 public:
  // `capacity` events, rounded up to a power of two; 0 records nothing.
  explicit Recorder(std::size_t capacity = kDefaultCapacity);

  static constexpr std::size_t kDefaultCapacity = 1U << 16U;

  // Safe from many threads.
  void record(const ExecutionEvent& event);
  [[nodiscard]] Label intern(std::string_view text);
  [[nodiscard]] std::string text_of(Label label) const;
  // All texts by their labels; the first is empty.
  [[nodiscard]] std::vector<std::string> labels() const;
  // Keeps a JSON text for exports, in a list under `key` (kPlans, say). Its place in that list, from 1 on; 0, and
  // nothing kept, while off.
  std::uint32_t attach(std::string_view key, std::string json);
  [[nodiscard]] Attachments attachments() const;
  // The events still in the ring, oldest first.
  [[nodiscard]] std::vector<ExecutionEvent> snapshot() const;
  // Events recorded since the start or the last clear, including those overwritten.
  [[nodiscard]] std::uint64_t recorded() const;
  // How many of these, the oldest, gave their place in the ring to others.
  [[nodiscard]] std::uint64_t overwritten() const;
  // Forgets the events, not labels and attachments, which programs that are prepared refer to.
  void clear();
  // Off: record() returns at once.
  void set_enabled(bool enabled) { enabled_.store(enabled, std::memory_order_relaxed); }
  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kWords = 7;
  struct Slot {                              // of one cache line
    std::atomic<std::uint64_t> sequence{0};  // odd while being written
    std::atomic<std::uint64_t> words[kWords];
  };

  std::unique_ptr<Slot[]> slots_;
  std::size_t mask_ = 0;
  std::atomic<bool> enabled_{false};
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> first_{0};  // events before this were cleared
  mutable std::mutex texts_mutex_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string, Label> label_ids_;
  Attachments attachments_;
};

}  // namespace shunt::trace
