#include "base/system/event_counter.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <semaphore>
#include <thread>

namespace shunt {
namespace {

constexpr CountedEvent kPageFaults[] = {CountedEvent::page_faults};
constexpr std::size_t kPages = 1024;

// Memory of which no page has been touched.
class UntouchedPages {
 public:
  UntouchedPages()
      : bytes_(mmap(nullptr, kPages * page_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(bytes_, MAP_FAILED);
    static_cast<void>(madvise(bytes_, kPages * page_bytes_, MADV_NOHUGEPAGE));  // fails where there are none
  }
  ~UntouchedPages() { munmap(bytes_, kPages * page_bytes_); }
  UntouchedPages(const UntouchedPages&) = delete;
  UntouchedPages& operator=(const UntouchedPages&) = delete;

  void touch() {
    for (std::size_t page = 0; page < kPages; ++page) static_cast<volatile char*>(bytes_)[page * page_bytes_] = 1;
  }

 private:
  std::size_t page_bytes_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* bytes_;
};

std::uint64_t faults_of(const EventCounter& counter) {
  const auto counts = counter.counts();
  EXPECT_TRUE(counts.has_value() && counts->size() == 1);
  return counts->front();
}

#define SHUNT_SKIP_WITHOUT_EVENTS() \
  if (!EventCounter::start(kPageFaults)) GTEST_SKIP() << "perf_event_open is not given here"

TEST(EventCounter, CountsTheThreadsThatThereAreWhenItStarts) {
  SHUNT_SKIP_WITHOUT_EVENTS();
  UntouchedPages mine;
  UntouchedPages others;
  UntouchedPages later;
  std::binary_semaphore may_touch(0);
  std::binary_semaphore has_touched(0);
  std::thread other([&] {
    may_touch.acquire();
    others.touch();
    has_touched.release();
  });
  const auto counter = EventCounter::start(kPageFaults);
  EXPECT_TRUE(counter.has_value());
  mine.touch();
  const std::uint64_t of_this_thread = faults_of(*counter);
  EXPECT_GE(of_this_thread, kPages);
  may_touch.release();
  has_touched.acquire();
  const std::uint64_t of_both = faults_of(*counter);
  EXPECT_GE(of_both, of_this_thread + kPages);
  std::thread([&] { later.touch(); }).join();
  other.join();
  EXPECT_LT(faults_of(*counter), of_both + kPages / 2) << "a thread that started later is counted too";
}

TEST(EventCounter, CountsAllEventsOfAThreadTogether) {
  SHUNT_SKIP_WITHOUT_EVENTS();
  const CountedEvent twice[] = {CountedEvent::page_faults, CountedEvent::page_faults};
  const auto counter = EventCounter::start(twice);
  ASSERT_TRUE(counter.has_value());
  UntouchedPages().touch();
  const auto counts = counter->counts();
  ASSERT_TRUE(counts.has_value() && counts->size() == 2);
  EXPECT_GE((*counts)[0], kPages);
  EXPECT_EQ((*counts)[0], (*counts)[1]);
  EXPECT_EQ(instructions_per_cycle(counter), 1);
}

TEST(InstructionsPerCycle, AreUnknownWithoutCycles) {
  SHUNT_SKIP_WITHOUT_EVENTS();
  const CountedEvent twice[] = {CountedEvent::page_faults, CountedEvent::page_faults};
  bool was_unknown = false;
  for (int repeat = 0; repeat < 100 && !was_unknown; ++repeat) {
    const auto rate = instructions_per_cycle(EventCounter::start(twice));
    EXPECT_EQ(rate.value_or(1), 1);
    was_unknown = !rate;
  }
  EXPECT_TRUE(was_unknown);
}

TEST(InstructionsPerCycle, AreUnknownWithoutCounters) { EXPECT_EQ(instructions_per_cycle(std::nullopt), std::nullopt); }

TEST(InstructionsPerCycle, AreThoseThatAProcessorHas) {
  const auto counter = count_instructions();
  if (!counter) GTEST_SKIP() << "the processor's counters are not given here";
  UntouchedPages().touch();
  const auto rate = instructions_per_cycle(counter);
  ASSERT_TRUE(rate.has_value());
  EXPECT_GT(*rate, 0.001);
  EXPECT_LT(*rate, 20);
}

}  // namespace
}  // namespace shunt
#endif
