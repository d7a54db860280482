// Records what happened: a bounded ring of events that any thread may write, and read while others write.
//
// Recording is a handful of relaxed atomic stores, never a lock or an allocation. When the ring is full, the oldest
// events are overwritten. Names are interned beforehand, when programs are prepared. A reader takes a snapshot and
// leaves out events that were being overwritten meanwhile. Large and rare things, such as plans, are attached as JSON.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shunt/trace.h"

namespace shunt::trace {

// Monotonic nanoseconds.
[[nodiscard]] std::uint64_t now_ns();

class Recorder {
 public:
  // Holds `capacity` events, rounded up to a power of two; 0 records nothing.
  explicit Recorder(std::size_t capacity = kDefaultCapacity);

  static constexpr std::size_t kDefaultCapacity = 1U << 16U;

  // Safe from many threads.
  void record(const ExecutionEvent& event);
  [[nodiscard]] Label intern(std::string_view text);
  [[nodiscard]] std::string text_of(Label label) const;
  // All texts by their labels; the first is empty.
  [[nodiscard]] std::vector<std::string> labels() const;
  // Keeps a JSON text for exports, in a list under `key` (kPlans, say). Returns its place in that list, from 1 on; 0,
  // and nothing is kept, while off.
  std::uint32_t attach(std::string_view key, std::string json);
  [[nodiscard]] Attachments attachments() const;
  // The events still in the ring, oldest first.
  [[nodiscard]] std::vector<ExecutionEvent> snapshot() const;
  // Events recorded since the start or the last clear, including those overwritten.
  [[nodiscard]] std::uint64_t recorded() const;
  // The number of these, the oldest, that were overwritten.
  [[nodiscard]] std::uint64_t overwritten() const;
  // Forgets the events, but not labels and attachments, which prepared programs refer to.
  void clear();
  // While off, record() returns at once.
  void set_enabled(bool enabled) { enabled_.store(enabled, std::memory_order_relaxed); }
  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kWords = 7;
  struct Slot {                              // one cache line
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
