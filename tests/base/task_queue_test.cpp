#include "base/system/task_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

namespace shunt {
namespace {

TEST(TaskQueue, RunsEachTaskOnceWithAnyNumberOfThreads) {
  for (const std::uint32_t threads : {0U, 1U, 4U}) {
    TaskQueue queue(threads);
    for (int repeat = 0; repeat < 100; ++repeat) {
      std::vector<int> first(37, 0);
      std::vector<int> second(5, 0);
      TaskQueue::Batch of_first(first.size(), [&](std::size_t task) { ++first[task]; });
      TaskQueue::Batch of_second(second.size(), [&](std::size_t task) { ++second[task]; });
      queue.start(of_first);
      queue.start(of_second);
      queue.wait(of_first);
      EXPECT_EQ(first, std::vector<int>(first.size(), 1));
      queue.wait(of_second);
      EXPECT_EQ(second, std::vector<int>(second.size(), 1));
      EXPECT_TRUE(queue.has_ended(of_first));
    }
  }
}

TEST(TaskQueue, WhatATaskThrowsIsThrownToWhoWaits) {
  for (const std::uint32_t threads : {0U, 3U}) {
    TaskQueue queue(threads);
    std::atomic<int> calls = 0;
    TaskQueue::Batch batch(8, [&](std::size_t task) {
      ++calls;
      if (task == 2) throw std::bad_alloc();
    });
    TaskQueue::Batch other(1, [&](std::size_t) { ++calls; });
    queue.start(batch);
    queue.start(other);
    EXPECT_THROW(queue.wait(batch), std::bad_alloc);
    queue.wait(other);
    EXPECT_EQ(calls, 9) << "others go on to the end";
  }
}

TEST(TaskQueue, TasksThatHaveNotBegunEndWithIt) {
  std::atomic<int> calls = 0;
  TaskQueue::Batch batch(1000, [&](std::size_t) { ++calls; });
  {
    TaskQueue queue(0);
    queue.start(batch);
    EXPECT_FALSE(queue.has_ended(batch));
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace shunt
