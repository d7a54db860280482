// Which device takes the next call, given invented times.
#include "arrays/choice.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace shunt::arrays {
namespace {

constexpr SizeClass kSize{.function = 0, .log2 = 10};
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Two devices whose calls take `us`.
struct Race {
  Choices choices;
  std::array<Contender, 2> contenders;
  std::array<double, 2> us;

  Race(std::array<double, 2> predicted, std::array<double, 2> real, double share = 0)
      : choices(1.2, share), contenders{{{0, predicted[0]}, {1, predicted[1]}}}, us(real) {}

  Chosen call(double limit_us = kNoLimit) {
    const Chosen choice = choices.choose(kSize, contenders, limit_us);
    choices.record(kSize, choice.device, us[choice.device]);
    return choice;
  }
};

TEST(ArrayChoice, BeginsWithThePredictionAndGoesOnWithWhatIsMeasured) {
  Race race({10, 30}, {100, 30});
  Chosen choice = race.call();
  EXPECT_EQ(choice.device, 0U);
  EXPECT_EQ(choice.reason, ArrayReason::predicted);
  choice = race.call();
  EXPECT_EQ(choice.device, 1U) << "100 us measured, 30 us predicted";
  EXPECT_EQ(choice.reason, ArrayReason::predicted);
  choice = race.call();
  EXPECT_EQ(choice.device, 1U);
  EXPECT_EQ(choice.reason, ArrayReason::measured);
}

TEST(ArrayChoice, AnUnmeasuredDeviceMustBePredictedToBeTwiceAsFast) {
  Race race({10, 30}, {59, 30});
  race.call();
  EXPECT_EQ(race.call().device, 0U) << "59 us is less than twice 30 us";
  Race slower({10, 30}, {61, 30});
  slower.call();
  EXPECT_EQ(slower.call().device, 1U);
}

TEST(ArrayChoice, StaysWithinTheMargin) {
  Race race({10, 10}, {10, 10}, 1);
  for (int i = 0; i < 20; ++i) race.call();
  const std::size_t first = race.call().device;
  for (int i = 0; i < 2000; ++i) {
    // The two alternate in being slightly faster.
    race.us[first] = i / 100 % 2 == 0 ? 11.5 : 10;
    race.us[1 - first] = i / 100 % 2 == 0 ? 10 : 11.5;
    const Chosen choice = race.call();
    if (choice.reason != ArrayReason::explored) {
      EXPECT_EQ(choice.device, first) << i;
    }
  }
}

TEST(ArrayChoice, FollowsMeasurementsThatChange) {
  Race race({10, 20}, {10, 20}, 0.1);
  for (int i = 0; i < 200; ++i) race.call();
  EXPECT_EQ(race.call().device, 0U);
  race.us[0] = 50;
  for (int i = 0; i < 5; ++i) race.call();
  EXPECT_EQ(race.call().device, 1U) << "the old one became slow";
  race.us[0] = 5;
  std::size_t calls = 0;
  while (calls < 5000 && (race.call().device != 0 || race.call().device != 0)) ++calls;
  EXPECT_LT(calls, 5000U) << "old measurements are made again";
  EXPECT_GT(calls, 0U);
}

TEST(ArrayChoice, OneOutlierChangesNothing) {
  Race race({10, 20}, {10, 20}, 0.1);
  for (int i = 0; i < 100; ++i) race.call();
  race.us[0] = 1e6;
  while (race.call().device != 0) {
  }
  race.us[0] = 10;
  for (int i = 0; i < 20; ++i) {
    const Chosen choice = race.call();
    if (choice.reason != ArrayReason::explored) {
      EXPECT_EQ(choice.device, 0U);
    }
  }
}

TEST(ArrayChoice, TheFirstCallOfASizeGoesToTheBestPrediction) {
  Race race({10, 11}, {10, 11}, 1);
  for (int i = 0; i < 100; ++i) race.call();
  const Chosen choice = race.choices.choose({.function = 0, .log2 = 11}, race.contenders, kNoLimit);
  EXPECT_EQ(choice.device, 0U);
  EXPECT_EQ(choice.reason, ArrayReason::predicted) << "there is nothing to compare with yet";
}

TEST(ArrayChoice, ABadBeginningIsForgotten) {
  Race race({10, 30}, {5000, 30}, 0.05);
  race.call();
  EXPECT_EQ(race.call().device, 1U);
  race.us[0] = 10;
  std::size_t calls = 0;
  while (calls < 5000 && (race.call().reason == ArrayReason::explored || race.call().device != 0)) ++calls;
  EXPECT_LT(calls, 5000U);
  EXPECT_GT(calls, 100U) << "not before the share allows another 5000 us";
}

TEST(ArrayChoice, ExploresNoMoreThanItsShareAndNothingHopeless) {
  Race race({10, 30}, {10, 30}, 0.1);
  double explored = 0;
  double total = 0;
  std::size_t times = 0;
  for (int i = 0; i < 1000; ++i) {
    const Chosen choice = race.call();
    total += race.us[choice.device];
    if (choice.reason != ArrayReason::explored) continue;
    EXPECT_EQ(choice.device, 1U);
    explored += race.us[1];
    ++times;
    EXPECT_LE(explored, 0.1 * total + 1e-9);
  }
  EXPECT_GE(times, Timing::kEnough);
  EXPECT_LE(times, 2 * Timing::kEnough) << "a few at first, then now and again";

  Race hopeless({10, 41}, {10, 1}, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(hopeless.call().device, 0U);
  Race forbidden({10, 11}, {10, 1}, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(forbidden.call().device, 0U);
}

TEST(ArrayChoice, PassesOverWhatIsBelievedToTakeLongerThanItMay) {
  Race race({10, 30}, {100, 30});
  EXPECT_EQ(race.call(20).device, 0U);
  EXPECT_EQ(race.call(50).device, 1U) << "the other was measured to take 100 us";
  EXPECT_EQ(race.call(5).device, 1U) << "where nothing is fast enough, the fastest";
}

TEST(ArrayChoice, KnowsEachSizeOfItsOwn) {
  Race race({10, 30}, {1000, 30});
  race.call();
  EXPECT_EQ(race.call().device, 1U);
  EXPECT_EQ(race.choices.choose({.function = 0, .log2 = 11}, race.contenders, kNoLimit).device, 0U);
  EXPECT_EQ(race.choices.choose({.function = 1, .log2 = 10}, race.contenders, kNoLimit).device, 0U);
  EXPECT_EQ(race.choices.find({.function = 1, .log2 = 10}, 0), nullptr);
  ASSERT_NE(race.choices.find(kSize, 0), nullptr);
  EXPECT_EQ(race.choices.find(kSize, 0)->median_us(), 1000);
}

}  // namespace
}  // namespace shunt::arrays
