#include "devices/cpu/limits.h"

#include <gtest/gtest.h>

namespace shunt::cpu {
namespace {

TEST(Limits, AreMeasuredWithTheThreadsAskedFor) {
  for (const std::uint32_t threads : {1U, 3U}) {
    auto limits = Limits::create(threads);
    ASSERT_TRUE(limits.has_value()) << limits.error().message;
    EXPECT_EQ((*limits)->threads(), threads);
    EXPECT_GT((*limits)->read_bytes_per_s(), 0);
    EXPECT_GT((*limits)->flops_per_s(1), 0);
    EXPECT_GT((*limits)->flops_per_s(threads), 0);
    EXPECT_GT((*limits)->fork_join_us(), 0);
  }
}

TEST(Limits, UseAllCoresUnlessTold) { EXPECT_EQ((*Limits::create(0))->threads(), usable_cores()); }

TEST(Limits, ReadMoreThanACacheHolds) { EXPECT_GE(beyond_cache_bytes(), std::uint64_t{256} << 20U); }

}  // namespace
}  // namespace shunt::cpu
