#include "devices/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace shunt::cpu {
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

TEST(ThreadPool, PinnedThreadsWorkAlsoWhereAProcessorIsMissing) {
  const std::uint32_t cpus[] = {0, 0, 1000};
  ThreadPool pool(3, cpus);
  std::vector<int> calls(3, 0);
  pool.run([&](std::uint32_t thread) { ++calls[thread]; });
  EXPECT_EQ(calls, std::vector<int>(3, 1));
}

}  // namespace
}  // namespace shunt::cpu
