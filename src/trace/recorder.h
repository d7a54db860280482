// What happened: a bounded ring of events that any thread may write and read while others write.
//
// Recording is a handful of relaxed atomic stores, never a lock or an allocation; when the ring is full the
// oldest events are overwritten. Names are interned beforehand, when programs are prepared. A reader takes a
// snapshot and leaves out events that were being overwritten meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
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

#define SHUNT_TRACE_KINDS(X) X(program) X(op) X(transfer)

enum class Kind : std::uint8_t {
#define SHUNT_TRACE_KIND(name) name,
  SHUNT_TRACE_KINDS(SHUNT_TRACE_KIND)
#undef SHUNT_TRACE_KIND
};
[[nodiscard]] std::string_view name_of(Kind kind);

using Label = std::uint32_t;

struct Event {
  std::uint64_t start_ns = 0;
  std::uint64_t duration_ns = 0;
  Label what = 0;    // op, program or transfer
  Label device = 0;  // where it ran
  Label reason = 0;  // why there; 0: unknown
  Kind kind = Kind::program;
  bool failed = false;
  Code code = Code::internal;  // where failed
  std::uint32_t step = 0;      // submission number
  float predicted_us = 0;      // 0: no prediction
  std::uint64_t bytes = 0;     // moved by a transfer
};

class Recorder {
 public:
  // `capacity` events, rounded up to a power of two; 0 records nothing.
  explicit Recorder(std::size_t capacity = kDefaultCapacity);

  static constexpr std::size_t kDefaultCapacity = 1U << 16U;

  // Safe from many threads.
  void record(const Event& event);
  [[nodiscard]] Label intern(std::string_view text);
  [[nodiscard]] std::string text_of(Label label) const;
  // The events still in the ring, oldest first.
  [[nodiscard]] std::vector<Event> snapshot() const;
  // Events recorded since the start or the last clear, including those overwritten.
  [[nodiscard]] std::uint64_t recorded() const;
  // How many of these, the oldest, gave their place in the ring to others.
  [[nodiscard]] std::uint64_t overwritten() const;
  void clear();
  // Off: record() returns at once.
  void set_enabled(bool enabled) { enabled_.store(enabled, std::memory_order_relaxed); }
  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kWords = 6;
  struct Slot {
    std::atomic<std::uint64_t> sequence{0};  // odd while being written
    std::atomic<std::uint64_t> words[kWords];
  };

  std::unique_ptr<Slot[]> slots_;
  std::size_t mask_ = 0;
  std::atomic<bool> enabled_{false};
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> first_{0};  // events before this were cleared
  mutable std::mutex labels_mutex_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string, Label> label_ids_;
};

}  // namespace shunt::trace
