// Threads of the processor are spread over memory nodes.
#include "devices/cpu/engine.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <pthread.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>

namespace shunt::cpu {
namespace {

cpu_set_t allowed_to_this_thread() {
  cpu_set_t set;
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
  return set;
}

// Returns where each of the pool's threads may run. No thread takes two shares, as each waits for the others.
std::array<cpu_set_t, 2> sets_of(ThreadPool& pool) {
  class Meeting final : public ThreadPool::Job {
   public:
    std::uint32_t next_step() override { return std::exchange(shares_, 0); }
    void run(std::uint32_t, std::uint32_t thread) override {
      sets[thread] = allowed_to_this_thread();
      ++here_;
      while (here_ < 2) std::this_thread::yield();
    }
    std::array<cpu_set_t, 2> sets{};

   private:
    std::uint32_t shares_ = 2;
    std::atomic<int> here_ = 0;
  } meeting;
  pool.run(meeting);
  return meeting.sets;
}

TEST(Engine, SpreadsThreadsOverMemoryNodes) {
  const cpu_set_t allowed = allowed_to_this_thread();
  constexpr int kOther = 1;  // the processor of node 1, if this process may use it
  cpu_set_t of_node;
  CPU_ZERO(&of_node);
  CPU_SET(kOther, &of_node);
  if (!CPU_ISSET(kOther, &allowed)) of_node = allowed;
  ThreadPool pool(2, {});
  spread_over(MemoryNodes::described("numa:2 pu:1"), pool);
  const auto sets = sets_of(pool);
  EXPECT_TRUE(CPU_EQUAL(&sets[0], &allowed)) << "the caller's thread";
  EXPECT_TRUE(CPU_EQUAL(&sets[1], &of_node));
}

TEST(Engine, LeavesThreadsToTheSystemWithOneMemoryNode) {
  const cpu_set_t allowed = allowed_to_this_thread();
  ThreadPool pool(2, {});
  spread_over(MemoryNodes(), pool);
  for (const cpu_set_t& set : sets_of(pool)) EXPECT_TRUE(CPU_EQUAL(&set, &allowed));
}

}  // namespace
}  // namespace shunt::cpu
#endif
