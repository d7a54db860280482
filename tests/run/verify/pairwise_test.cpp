#include "run/verify/pairwise.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace shunt {
namespace {

TEST(Pairwise, EveryTwoOptionsMeet) {
  const std::uint32_t options[] = {3, 8, 4, 1, 7, 2, 4};
  std::set<std::tuple<std::size_t, std::uint32_t, std::size_t, std::uint32_t>> met;
  const std::vector<Combination> combinations = pairwise(options);
  for (const Combination& combination : combinations) {
    ASSERT_EQ(combination.size(), std::size(options));
    for (std::size_t a = 0; a < combination.size(); ++a) {
      ASSERT_LT(combination[a], options[a]);
      for (std::size_t b = a + 1; b < combination.size(); ++b) met.insert({a, combination[a], b, combination[b]});
    }
  }
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < std::size(options); ++a)
    for (std::size_t b = a + 1; b < std::size(options); ++b) pairs += std::size_t{options[a]} * options[b];
  EXPECT_EQ(met.size(), pairs);
  EXPECT_LT(combinations.size(), 2 * 8 * 7U) << "of 5376";
}

TEST(Pairwise, OnePickOrNoneStillHasItsOptions) {
  EXPECT_EQ(pairwise(std::vector<std::uint32_t>{3}).size(), 3U);
  EXPECT_EQ(pairwise({}).size(), 1U);
}

TEST(Pairwise, NextCombinationWalksThroughAllCombinations) {
  const std::uint32_t options[] = {2, 3, 1};
  Combination combination(3, 0);
  std::set<Combination> seen;
  do seen.insert(combination);
  while (next_combination(combination, options));
  EXPECT_EQ(seen.size(), 6U);
}

}  // namespace
}  // namespace shunt
