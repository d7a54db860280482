#include "base/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace shunt {
namespace {

TEST(Units, AreThoseThatPeopleRead) {
  EXPECT_EQ(in_units(0), "0 bytes");
  EXPECT_EQ(in_units(1), "1 byte");
  EXPECT_EQ(in_units(1023), "1023 bytes");
  EXPECT_EQ(in_units(4096), "4.0 KiB");
  EXPECT_EQ(in_units(3'346'432), "3.2 MiB");
  EXPECT_EQ(in_units((1U << 30U) - 1), "1.00 GiB");
  EXPECT_EQ(in_units(~std::uint64_t{0}), "16777216.00 TiB");
  EXPECT_EQ(in_time(0), "0.0 us");
  EXPECT_EQ(in_time(999.94), "999.9 us");
  EXPECT_EQ(in_time(999.96), "1.0 ms");
  EXPECT_EQ(in_time(-1500), "-1.5 ms");
  EXPECT_EQ(in_time(2.5e6), "2.50 s");
  EXPECT_EQ(in_percent(0.996), "100 %");
  EXPECT_EQ(in_percent(0.5), "50 %");
}

TEST(Units, LongNamesAreCutBetweenCharacters) {
  EXPECT_EQ(shortened("name", 4), "name");
  EXPECT_EQ(shortened("a name", 5), "a ...");
  EXPECT_EQ(shortened("\u00e9\u00e9\u00e9\u00e9", 8), "\u00e9\u00e9\u00e9\u00e9");
  EXPECT_EQ(shortened("\u00e9\u00e9\u00e9\u00e9", 7), "\u00e9\u00e9...");
  EXPECT_EQ(shortened("\u00e9\u00e9\u00e9\u00e9", 6), "\u00e9...");
  EXPECT_EQ(shortened("12345", 3), "...");
  EXPECT_EQ(first_characters("\u2581x", 2), "");
}

// At most four digits before the point, and within a twentieth of the true value.
TEST(Units, AreNearForEverySize) {
  const std::string units[] = {"bytes", "byte", "KiB", "MiB", "GiB", "TiB"};
  for (int bit = 0; bit < 53; ++bit)
    for (const std::int64_t more : {-1, 0, 1}) {
      const std::uint64_t bytes = (std::uint64_t{1} << static_cast<unsigned>(bit)) + static_cast<std::uint64_t>(more);
      const std::string text = in_units(bytes);
      const std::size_t space = text.find(' ');
      const std::string unit = text.substr(space + 1);
      double scale = 1;
      for (std::size_t i = 2; i < std::size(units); ++i)
        if (units[i] == unit) scale = std::ldexp(1.0, 10 * static_cast<int>(i - 1));
      EXPECT_NEAR(std::stod(text) * scale, static_cast<double>(bytes), 0.05 * static_cast<double>(bytes)) << text;
      EXPECT_LE(text.find_first_of(". "), 4U) << text;
    }
}

}  // namespace
}  // namespace shunt
