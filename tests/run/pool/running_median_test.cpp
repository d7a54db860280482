#include "run/pool/running_median.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace shunt {
namespace {

TEST(RunningMedian, SaysNothingBeforeItHasSeenEnough) {
  RunningMedian median;
  for (std::size_t seen = 0; seen < RunningMedian::kEnough; ++seen) {
    EXPECT_FALSE(median.get().has_value());
    median.add(2);
    for (const double nothing :
         {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
      median.add(nothing);
  }
  EXPECT_EQ(median.get(), 2.0);
}

TEST(RunningMedian, IsRightWhileFewerThanHalfOfTheValuesArePoisoned) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    RunningMedian median;
    std::size_t since = 0;
    for (int i = 0; i < 300; ++i) {
      // Three in a row of every seven values are wrong, whatever they are.
      const bool poisoned = i % 7 < 3;
      const double wrong = random() % 2 == 0 ? 1e-9 : 1e9;
      const double right = 0.9 + 0.2 * (static_cast<double>(random() % 1000) / 1000);
      median.add(poisoned ? wrong : right);
      if (++since < RunningMedian::kWindow) continue;
      EXPECT_GE(*median.get(), 0.9);
      EXPECT_LE(*median.get(), 1.1);
    }
  }
}

TEST(RunningMedian, FollowsWhatHasChanged) {
  RunningMedian median;
  for (std::size_t i = 0; i < RunningMedian::kWindow; ++i) median.add(1);
  for (std::size_t i = 0; i <= RunningMedian::kWindow / 2; ++i) {
    EXPECT_EQ(median.get(), 1.0);
    median.add(3);
  }
  EXPECT_EQ(median.get(), 3.0);
}

}  // namespace
}  // namespace shunt
