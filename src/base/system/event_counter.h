// Counts what this process's threads do in user space, such as instructions and cycles, where the system gives that.
//
// Linux gives it with perf_event_open(2): if /proc/sys/kernel/perf_event_paranoid is at most 2 and no sandbox forbids
// the call. The processor's own events also need counters, which many virtual machines lack. Each object counts the
// threads that exist when it starts, all its events over the same time, and holds an open file per thread and event.
// One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shunt {

enum class CountedEvent : std::uint8_t {
  cycles,
  instructions,
  page_faults,  // counted by the system, without the processor's counters
};

class EventCounter {
 public:
  // Begins to count; nullopt: the system does not give one of the events. REQUIRES: events is not empty.
  [[nodiscard]] static std::optional<EventCounter> start(std::span<const CountedEvent> events);
  EventCounter(EventCounter&&) noexcept = default;
  EventCounter& operator=(EventCounter&&) = delete;
  ~EventCounter();

  // Returns how many of each event these threads have had together; nullopt: the system no longer gives them.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> counts() const;

 private:
  explicit EventCounter(std::size_t events) : events_(events) {}
  // Opens the events of a thread; false: errno says why one is not given.
  [[nodiscard]] bool add(int thread, std::span<const CountedEvent> events);
  void close_from(std::size_t begin);

  std::size_t events_;
  std::vector<int> files_;  // [threads][events_], the first of a thread's is read for all of them
};

// Counts cycles and instructions.
[[nodiscard]] std::optional<EventCounter> count_instructions();
// Returns the instructions per cycle of what count_instructions() returned before; nullopt: they are unknown, or there
// were no cycles.
[[nodiscard]] std::optional<double> instructions_per_cycle(const std::optional<EventCounter>& counter);

}  // namespace shunt
