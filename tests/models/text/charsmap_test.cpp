#include "models/text/charsmap.h"

#include <gtest/gtest.h>

#include <string>

namespace shunt::models {
namespace {

// A map in which 'a' stands for `text`, in the layout of darts-clone.
std::vector<std::uint8_t> map_of_a(const std::string& text) {
  constexpr std::uint32_t kRoot = 0x100;
  constexpr std::uint32_t kNode = kRoot ^ 'a';
  constexpr std::uint32_t kLeaf = kNode ^ 0x200U;
  std::vector<std::uint32_t> units(kLeaf + 1);
  units[0] = kRoot << 10U;
  units[kNode] = 0x200U << 10U | 1U << 8U | 'a';
  units[kLeaf] = 1U << 31U;  // the text's offset is 0
  std::vector<std::uint8_t> bytes;
  const auto put = [&](std::uint32_t word) {
    for (const unsigned shift : {0U, 8U, 16U, 24U}) bytes.push_back(static_cast<std::uint8_t>(word >> shift));
  };
  put(static_cast<std::uint32_t>(4 * units.size()));
  for (const std::uint32_t unit : units) put(unit);
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.push_back(0);
  return bytes;
}

// Otherwise a large file and a long prompt could expand to text that no memory holds.
TEST(Charsmap, CharactersStandForLittleText) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{256}, std::size_t{257}}) {
    const std::string text(length, 'x');
    const auto map = Charsmap::parse(map_of_a(text));
    ASSERT_TRUE(map.has_value()) << map.error().message;
    const Charsmap::Replacement step = map->first("ab");
    EXPECT_EQ(step.length, 1U);
    EXPECT_EQ(step.text, length <= 256 ? text : "a") << length;
    EXPECT_EQ(map->first("b").text, "b");
  }
}

}  // namespace
}  // namespace shunt::models
