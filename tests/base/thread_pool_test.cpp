#include "base/system/thread_pool.h"

#include <gtest/gtest.h>
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include <atomic>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace shunt {
namespace {

TEST(ThreadPool, RunsEveryShareOnce) {
  for (const std::uint32_t threads : {1U, 2U, 5U, 17U}) {
    ThreadPool pool(threads, {});
    ASSERT_EQ(pool.threads(), threads);
    for (int repeat = 0; repeat < 200; ++repeat) {
      std::vector<int> calls(threads, 0);
      pool.run([&](std::uint32_t share) { ++calls[share]; });
      EXPECT_EQ(calls, std::vector<int>(threads, 1));
    }
  }
}

// Steps of given numbers of shares, which note what they meet.
class Steps final : public ThreadPool::Job {
 public:
  explicit Steps(std::vector<std::uint32_t> shares) : shares_(std::move(shares)) {}

  std::uint32_t next_step() override {
    if (step_ > 0 && ended_.exchange(0) != shares_[step_ - 1]) ++mistakes;
    return step_ < shares_.size() ? shares_[step_++] : 0;
  }
  void run(std::uint32_t share, std::uint32_t) override {
    if (share >= shares_[step_ - 1]) ++mistakes;
    ++ended_;
  }

  std::atomic<int> mistakes = 0;

 private:
  std::vector<std::uint32_t> shares_;
  std::size_t step_ = 0;
  std::atomic<std::uint32_t> ended_ = 0;
};

TEST(ThreadPool, AStepBeginsWhenAllSharesOfTheOneBeforeHaveEnded) {
  for (const std::uint32_t threads : {1U, 2U, 3U, 7U, 18U}) {
    ThreadPool pool(threads, {});
    for (int repeat = 0; repeat < 50; ++repeat) {
      Steps steps({3, 1, 1, 2, 7, 1, 64, 3, 12, 1});
      pool.run(steps);
      EXPECT_EQ(steps.mistakes, 0);
    }
  }
}

// Also of memory that does not exist any more.
TEST(ThreadPool, FetchesBetweenJobsAndRunsThemAsBefore) {
  for (const std::uint32_t threads : {1U, 2U, 5U}) {
    ThreadPool pool(threads, {});
    std::vector<std::byte> gone(1U << 20U);
    std::vector<ThreadPool::Fetched> of_threads(threads);
    for (ThreadPool::Fetched& fetched : of_threads) fetched = {std::span(gone), {}, std::span(gone).first(100), {}};
    gone = {};
    for (int repeat = 0; repeat < 100; ++repeat) {
      pool.fetch(of_threads);
      if (repeat % 3 == 0) pool.fetch(std::span(of_threads).first(repeat % 2 == 0 ? 0U : 1U));
      Steps steps({3, 1, 1, 2, 7});
      pool.run(steps);
      EXPECT_EQ(steps.mistakes, 0);
    }
    pool.fetch(of_threads);  // may go on until the pool ends
  }
}

TEST(ThreadPool, AJobWithoutStepsEndsAtOnce) {
  ThreadPool pool(2, {});
  Steps none({});
  pool.run(none);
  EXPECT_EQ(none.mistakes, 0);
}

// One thread is held up in its first share until all other shares have ended, which only the other thread can run.
TEST(ThreadPool, TheSharesOfALateThreadAreTakenByOthers) {
  constexpr std::uint32_t kShares = 8;
  class Late final : public ThreadPool::Job {
   public:
    std::uint32_t next_step() override { return std::exchange(shares_, 0); }
    void run(std::uint32_t share, std::uint32_t) override {
      if (share == kShares / 2)
        while (ended_ < kShares - 1) std::this_thread::yield();
      ++ended_;
    }

   private:
    std::uint32_t shares_ = kShares;
    std::atomic<std::uint32_t> ended_ = 0;
  };
  ThreadPool pool(2, {});
  for (int repeat = 0; repeat < 20; ++repeat) {
    Late late;
    pool.run(late);
  }
}

TEST(ThreadPool, WhatAJobThrowsIsThrownToItsCaller) {
  ThreadPool pool(4, {});
  for (std::uint32_t thrower = 0; thrower < 4; ++thrower) {
    std::vector<int> calls(4, 0);
    EXPECT_THROW(pool.run([&](std::uint32_t thread) {
      ++calls[thread];
      if (thread >= thrower) throw std::bad_alloc();
    }),
                 std::bad_alloc);
    EXPECT_EQ(calls, std::vector<int>(4, 1)) << "others go on to the end";
  }
  pool.run([](std::uint32_t) {});
}

TEST(ThreadPool, AnExceptionEndsTheJobAfterItsStep) {
  class Throws final : public ThreadPool::Job {
   public:
    std::uint32_t next_step() override { return ++steps <= 5 ? 4 : 0; }
    void run(std::uint32_t share, std::uint32_t) override {
      if (steps == 3 && share == 2) throw std::bad_alloc();
    }
    int steps = 0;
  } job;
  ThreadPool pool(3, {});
  EXPECT_THROW(pool.run(job), std::bad_alloc);
  EXPECT_EQ(job.steps, 3);

  class CannotGoOn final : public ThreadPool::Job {
   public:
    std::uint32_t next_step() override { return ++steps < 3 ? 6 : throw std::bad_alloc(); }
    void run(std::uint32_t, std::uint32_t) override {}
    int steps = 0;
  } other;
  EXPECT_THROW(pool.run(other), std::bad_alloc);
  EXPECT_EQ(other.steps, 3);
}

#if defined(__linux__)
cpu_set_t processors_of_this_thread() {
  cpu_set_t set;
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
  return set;
}

// Notes where three threads may run, and where they do. No thread takes a second share, as each waits for the others.
class Meeting final : public ThreadPool::Job {
 public:
  std::uint32_t next_step() override { return std::exchange(shares_, 0); }
  void run(std::uint32_t, std::uint32_t thread) override {
    sets[thread] = processors_of_this_thread();
    running[thread] = sched_getcpu();
    ++here_;
    while (here_ < 3) std::this_thread::yield();
  }
  std::vector<cpu_set_t> sets = std::vector<cpu_set_t>(3);
  std::vector<int> running = std::vector<int>(3, -1);

 private:
  std::uint32_t shares_ = 3;
  std::atomic<int> here_ = 0;
};

TEST(ThreadPool, AThreadStaysOnTheProcessorsThatItIsKeptOn) {
  const cpu_set_t allowed = processors_of_this_thread();
  std::uint32_t last = 0;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) last = cpu;
  ThreadPool pool(3, {});
  pool.keep_on(1, {{last}});
  pool.keep_on(2, {{4000}});  // which the system refuses
  Meeting meeting;
  pool.run(meeting);
  EXPECT_TRUE(CPU_EQUAL(&meeting.sets[0], &allowed));
  EXPECT_EQ(CPU_COUNT(&meeting.sets[1]), 1);
  EXPECT_EQ(meeting.running[1], static_cast<int>(last));
  EXPECT_TRUE(CPU_EQUAL(&meeting.sets[2], &allowed));
}

TEST(ThreadPool, ThreadsStayWhereTheyArePinned) {
  const cpu_set_t allowed = processors_of_this_thread();
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::uint32_t cpus[] = {cpu, cpu, cpu};
    ThreadPool pool(3, cpus);
    ASSERT_TRUE(pool.status().has_value()) << pool.status().error().message;
    Meeting meeting;
    pool.run(meeting);
    EXPECT_TRUE(CPU_EQUAL(&meeting.sets[0], &allowed)) << "the caller's thread was pinned";
    for (const std::size_t worker : {1U, 2U}) {
      EXPECT_EQ(CPU_COUNT(&meeting.sets[worker]), 1);
      EXPECT_EQ(meeting.running[worker], static_cast<int>(cpu));
    }
  }
}
#endif

TEST(ThreadPool, AProcessorThatIsMissingIsNamedAndThePoolWorks) {
  const std::uint32_t cpus[] = {0, 4000, 0};
  ThreadPool pool(3, cpus);
  ASSERT_FALSE(pool.status().has_value());
  EXPECT_EQ(pool.status().error().code, Code::invalid);
  EXPECT_NE(pool.status().error().message.find("processor 4000: this process may use only "), std::string::npos)
      << pool.status().error().message;
  std::vector<int> calls(3, 0);
  pool.run([&](std::uint32_t thread) { ++calls[thread]; });
  EXPECT_EQ(calls, std::vector<int>(3, 1));
}

}  // namespace
}  // namespace shunt
