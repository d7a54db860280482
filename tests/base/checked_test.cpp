#include "base/checked.h"

#include <gtest/gtest.h>

#include <limits>

namespace shunt {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(Checked, ProductsAreThereWhereTheyFit) {
  EXPECT_EQ(checked_product(), 1U);
  EXPECT_EQ(checked_product(std::uint64_t{1} << 32U, (std::uint64_t{1} << 32U) - 1), kMost - (kMost >> 32U));
  EXPECT_EQ(checked_product(std::uint64_t{1} << 32U, std::uint64_t{1} << 32U), std::nullopt);
  EXPECT_EQ(checked_product(kMost, kMost, 0), 0U);
  EXPECT_EQ(checked_product<std::uint32_t>(65535U, 65537U), 4294967295U);
  EXPECT_EQ(checked_product<std::uint32_t>(65536U, 65536U), std::nullopt);
  EXPECT_EQ(checked_product<std::uint32_t>(kMost), std::nullopt);
}

TEST(Checked, NegativeFactorsFitNoSize) {
  EXPECT_EQ(checked_product(-1), std::nullopt);
  EXPECT_EQ(checked_product(-1, -1), std::nullopt);
  EXPECT_EQ(checked_product(2U, std::numeric_limits<std::int64_t>::max()), kMost - 1);
  EXPECT_EQ(checked_product(4U, std::numeric_limits<std::int64_t>::max()), std::nullopt);
}

TEST(Checked, SumsAreThereWhereTheyFit) {
  EXPECT_EQ(checked_sum(), 0U);
  EXPECT_EQ(checked_sum(kMost - 1, 1U), kMost);
  EXPECT_EQ(checked_sum(kMost, 1U), std::nullopt);
  EXPECT_EQ(checked_sum<std::uint32_t>(4294967295U, 1U), std::nullopt);
  EXPECT_EQ(checked_sum(1, -2), std::nullopt);
}

}  // namespace
}  // namespace shunt
