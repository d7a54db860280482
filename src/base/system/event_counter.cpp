#include "base/system/event_counter.h"

#include <cstddef>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#endif

namespace shunt {
namespace {

constexpr CountedEvent kCyclesAndInstructions[] = {CountedEvent::cycles, CountedEvent::instructions};

#if defined(__linux__)
void set_event(perf_event_attr& attributes, CountedEvent event) {
  attributes.type = event == CountedEvent::page_faults ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE;
  switch (event) {
    case CountedEvent::cycles:
      attributes.config = PERF_COUNT_HW_CPU_CYCLES;
      return;
    case CountedEvent::instructions:
      attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
      return;
    case CountedEvent::page_faults:
      attributes.config = PERF_COUNT_SW_PAGE_FAULTS;
      return;
  }
}

// Returns the file of an event of a thread, which waits to be enabled with its group's first; `first` is -1 for that
// one. -1: errno says why there is none.
int open_event(CountedEvent event, pid_t thread, int first) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.read_format = PERF_FORMAT_GROUP;
  attributes.disabled = first < 0;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  set_event(attributes, event);
  constexpr int kAnyProcessor = -1;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, thread, kAnyProcessor, first, PERF_FLAG_FD_CLOEXEC));
}

std::vector<pid_t> threads_of_this_process() {
  std::vector<pid_t> threads;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/task", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc()) threads.push_back(thread);
  }
  return threads;
}
#endif

}  // namespace

#if defined(__linux__)
std::optional<EventCounter> EventCounter::start(std::span<const CountedEvent> events) {
  EventCounter counter(events.size());
  for (const pid_t thread : threads_of_this_process())
    if (!counter.add(thread, events) && errno != ESRCH) return std::nullopt;  // ESRCH: the thread has ended
  if (counter.files_.empty()) return std::nullopt;
  for (std::size_t at = 0; at < counter.files_.size(); at += events.size())
    if (ioctl(counter.files_[at], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) != 0) return std::nullopt;
  return counter;
}

bool EventCounter::add(int thread, std::span<const CountedEvent> events) {
  const std::size_t begin = files_.size();
  for (const CountedEvent event : events) {
    const int file = open_event(event, thread, files_.size() == begin ? -1 : files_[begin]);
    if (file < 0) {
      const int why = errno;
      close_from(begin);
      errno = why;
      return false;
    }
    files_.push_back(file);
  }
  return true;
}

void EventCounter::close_from(std::size_t begin) {
  for (std::size_t at = begin; at < files_.size(); ++at) static_cast<void>(::close(files_[at]));
  files_.resize(begin);
}

EventCounter::~EventCounter() { close_from(0); }

std::optional<std::vector<std::uint64_t>> EventCounter::counts() const {
  std::vector<std::uint64_t> sums(events_);
  std::vector<std::uint64_t> group(1 + events_);  // how many there are, then each
  for (std::size_t at = 0; at < files_.size(); at += events_) {
    const std::size_t bytes = group.size() * sizeof group[0];
    if (::read(files_[at], group.data(), bytes) != static_cast<ssize_t>(bytes)) return std::nullopt;
    for (std::size_t event = 0; event < events_; ++event) sums[event] += group[1 + event];
  }
  return sums;
}
#else
std::optional<EventCounter> EventCounter::start(std::span<const CountedEvent>) { return std::nullopt; }
EventCounter::~EventCounter() = default;
std::optional<std::vector<std::uint64_t>> EventCounter::counts() const { return std::nullopt; }
#endif

std::optional<EventCounter> count_instructions() { return EventCounter::start(kCyclesAndInstructions); }

std::optional<double> instructions_per_cycle(const std::optional<EventCounter>& counter) {
  if (!counter) return std::nullopt;
  const auto counts = counter->counts();
  if (!counts || (*counts)[0] == 0) return std::nullopt;
  return static_cast<double>((*counts)[1]) / static_cast<double>((*counts)[0]);
}

}  // namespace shunt
