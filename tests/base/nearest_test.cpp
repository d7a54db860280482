#include "base/nearest.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

namespace shunt {
namespace {

using Names = std::vector<std::string_view>;
const Names kNames = {"run",    "devices",  "inspect", "quantize", "calibrate",     "bench",  "verify",
                      "cuda:0", "vulkan:0", "Q4_K_M",  "Q5_K_M",   "--temperature", "--top-k"};

TEST(Nearest, FindsWhatWasMeant) {
  for (const auto& [text, meant] : {std::pair{"rnu", "run"},
                                    {"device", "devices"},
                                    {"calib", "calibrate"},
                                    {"CUDA0", "cuda:0"},
                                    {"q4_k_n", "Q4_K_M"},
                                    {"--temprature", "--temperature"},
                                    {"--topk", "--top-k"},
                                    {"--temp", "--temperature"}})
    EXPECT_EQ(nearest(text, kNames), meant) << text;
  EXPECT_EQ(did_you_mean("benhc", kNames), " (did you mean bench?)");
}

TEST(Nearest, SaysNothingWhereNothingIsNear) {
  for (const char* text : {"", "-", "--", "x", "fly", "rum", "nonsense", "--fast", "--zzz", "everything"})
    EXPECT_EQ(nearest(text, kNames), std::nullopt) << text;
  EXPECT_EQ(nearest(std::string(100'000, 'a'), kNames), std::nullopt);
  EXPECT_EQ(did_you_mean("nonsense", kNames), "");
}

TEST(Nearest, KnowsEachNameWithOneChangeAnywhere) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const std::string_view name : Names{"devices", "inspect", "quantize", "calibrate", "verify", "vulkan:0"})
    for (std::size_t place = 0; place < name.size(); ++place) {
      std::string less(name);
      std::string more(name);
      std::string other(name);
      less.erase(place, 1);
      more.insert(place, 1, static_cast<char>('a' + random() % 26));
      other[place] = static_cast<char>('A' + random() % 26);
      for (const std::string& text : {less, more, other}) EXPECT_EQ(nearest(text, kNames), name) << text;
    }
}

TEST(Nearest, CaseIsNoDifferenceOfWords) {
  EXPECT_TRUE(is_same_word("q4_k_m", "Q4_K_M"));
  EXPECT_FALSE(is_same_word("q4_k", "Q4_K_M"));
  EXPECT_TRUE(is_same_word("", ""));
}

}  // namespace
}  // namespace shunt
