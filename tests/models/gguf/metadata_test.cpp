#include "models/gguf/metadata.h"

#include <gtest/gtest.h>

#include <limits>

namespace shunt::models {
namespace {

TEST(Metadata, GettersTakeAnyTypeThatHoldsTheNumber) {
  Metadata metadata;
  metadata.set("u64", std::uint64_t{5});
  metadata.set("i8", std::int8_t{5});
  metadata.set("negative", std::int32_t{-1});
  metadata.set("large", std::uint64_t{1} << 32);
  metadata.set("double", 0.5);
  metadata.set("infinite", std::numeric_limits<float>::infinity());
  metadata.set("yes", true);
  EXPECT_EQ(metadata.u32("u64").value_or(0), 5U);
  EXPECT_EQ(metadata.u32("i8").value_or(0), 5U);
  EXPECT_FALSE(metadata.u32("negative").has_value());
  EXPECT_FALSE(metadata.u32("large").has_value());
  EXPECT_FALSE(metadata.u32("yes").has_value());
  EXPECT_EQ(metadata.f32("double").value_or(0), 0.5F);
  EXPECT_FALSE(metadata.f32("infinite").has_value());
  EXPECT_FALSE(metadata.f32("u64").has_value());
  EXPECT_FALSE(metadata.boolean("u64").has_value());
  EXPECT_EQ(metadata.u32("string").error().message, "metadata key \"string\" is missing");
  EXPECT_EQ(metadata.string("yes").error().message, "metadata key \"yes\" is not a string (its type is boolean)");
  EXPECT_EQ(metadata.u32_or("none", 9).value_or(0), 9U);
  EXPECT_FALSE(metadata.u32_or("yes", 9).has_value());
}

TEST(Metadata, ArraysAreReadInTheirClass) {
  Metadata metadata;
  metadata.set("u16", std::vector<std::uint16_t>{1, 65535});
  metadata.set("wide", std::vector<std::int64_t>{1, std::int64_t{1} << 31});
  metadata.set("doubles", std::vector<double>{0.25});
  metadata.set("too large", std::vector<double>{1e300});
  EXPECT_EQ(metadata.i32s("u16").value_or(std::vector<std::int32_t>{}), (std::vector<std::int32_t>{1, 65535}));
  EXPECT_FALSE(metadata.i32s("wide").has_value());
  EXPECT_FALSE(metadata.i32s("doubles").has_value());
  EXPECT_EQ(metadata.f32s("doubles").value_or(std::vector<float>{}), std::vector<float>{0.25F});
  EXPECT_FALSE(metadata.f32s("too large").has_value());
  EXPECT_FALSE(metadata.strings("u16").has_value());
}

TEST(Metadata, KeepsTheOrderOfInsertion) {
  Metadata metadata;
  for (const char* key : {"m", "z", "a", "k"}) ASSERT_TRUE(metadata.insert(key, std::uint32_t{1}).has_value());
  EXPECT_FALSE(metadata.insert("z", std::uint32_t{2}).has_value());
  metadata.set("z", std::uint32_t{3});
  metadata.erase("m");
  metadata.erase("none");
  metadata.set("b", std::uint32_t{4});
  std::string order;
  for (const auto& [key, value] : metadata.all()) order += key;
  EXPECT_EQ(order, "zakb");
  EXPECT_EQ(metadata.u32("z").value_or(0), 3U);
  EXPECT_EQ(metadata.u32("b").value_or(0), 4U);
  EXPECT_EQ(metadata.find("m"), nullptr);
}

}  // namespace
}  // namespace shunt::models
