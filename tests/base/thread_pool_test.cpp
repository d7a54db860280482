#include "base/system/thread_pool.h"

#include <gtest/gtest.h>
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include <new>
#include <vector>

namespace shunt {
namespace {

TEST(ThreadPool, RunsAJobOnceOnEveryThread) {
  for (const std::uint32_t threads : {1U, 2U, 5U}) {
    ThreadPool pool(threads, {});
    ASSERT_EQ(pool.threads(), threads);
    for (int repeat = 0; repeat < 200; ++repeat) {
      std::vector<int> calls(threads, 0);
      pool.run([&](std::uint32_t thread) { ++calls[thread]; });
      EXPECT_EQ(calls, std::vector<int>(threads, 1));
    }
  }
}

TEST(ThreadPool, NobodyPassesABarrierBeforeAllHaveCome) {
  ThreadPool pool(3, {});
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<int> step(3, 0);
    std::vector<int> mistakes(3, 0);
    pool.run([&](std::uint32_t thread) {
      for (int i = 1; i <= 20; ++i) {
        step[thread] = i;
        pool.barrier();
        for (const int other : step)
          if (other != i) ++mistakes[thread];
        pool.barrier();
      }
    });
    EXPECT_EQ(mistakes, std::vector<int>(3, 0));
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

#if defined(__linux__)
cpu_set_t processors_of_this_thread() {
  cpu_set_t set;
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
  return set;
}

TEST(ThreadPool, ThreadsStayWhereTheyArePinned) {
  const cpu_set_t allowed = processors_of_this_thread();
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::uint32_t cpus[] = {cpu, cpu, cpu};
    ThreadPool pool(3, cpus);
    ASSERT_TRUE(pool.status().has_value()) << pool.status().error().message;
    std::vector<cpu_set_t> sets(3);
    std::vector<int> running(3, -1);
    pool.run([&](std::uint32_t thread) {
      sets[thread] = processors_of_this_thread();
      running[thread] = sched_getcpu();
    });
    EXPECT_TRUE(CPU_EQUAL(&sets[0], &allowed)) << "the caller's thread was pinned";
    for (const std::size_t worker : {1U, 2U}) {
      EXPECT_EQ(CPU_COUNT(&sets[worker]), 1);
      EXPECT_EQ(running[worker], static_cast<int>(cpu));
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
