// Hostile JSON text is refused before it exhausts the stack.
#include "base/parse_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/own_cache.h"
#include "base/system/text_file.h"
#include "devices/discovery/known_apis.h"
#include "devices/discovery/registry.h"
#include "devices/sim/machine.h"
#include "plan/costs/profile.h"
#include "trace/chrome.h"

namespace shunt {
namespace {

std::string nested(std::size_t depth, const std::string& inner = "") {
  return std::string(depth, '[') + inner + std::string(depth, ']');
}

TEST(ParseJson, TakesWhatIsNestedAsDeeplyAsItMayBeAndNoDeeper) {
  EXPECT_FALSE(parse_json(nested(kMostJsonDepth)).is_discarded());
  EXPECT_TRUE(parse_json(nested(kMostJsonDepth + 1)).is_discarded());
  EXPECT_TRUE(parse_json(R"({"a":)" + nested(kMostJsonDepth) + "}").is_discarded());
}

TEST(ParseJson, BracketsInStringsAreNoDepth) {
  const std::string text = std::string(1000, '[') + R"(\"\\)" + std::string(1000, '{');
  EXPECT_FALSE(parse_json("[\"" + text + "\"]").is_discarded());
  EXPECT_TRUE(is_shallow_json("[]" + std::string(1, '"') + text));
}

TEST(ParseJson, ClosedBracketsGiveTheirDepthBack) {
  std::string text = "[";
  for (int i = 0; i < 1000; ++i) text += "[],";
  EXPECT_FALSE(parse_json(text + "{}]").is_discarded());
}

TEST(ParseJson, IsBoundedInSize) {
  EXPECT_FALSE(parse_json("[1, 2]", 6).is_discarded());
  EXPECT_TRUE(parse_json("[1, 2]", 5).is_discarded());
}

// Each reader of a file, with JSON nested too deeply.
class JsonReaders : public test::OwnCache {};
TEST_F(JsonReaders, RefuseWhatIsTooDeep) {
  constexpr std::size_t kDeep = 1'000'000;
  const std::string deep = nested(kDeep);
  std::filesystem::create_directories(folder_);
  for (const std::string& text : {deep, R"({"format":)" + deep + "}", R"({"traceEvents":)" + deep + "}",
                                  R"({"format":"x","devices":)" + deep + "}", std::string(kDeep, '{')}) {
    EXPECT_EQ(trace::from_chrome_json(text, "t").error().code, Code::invalid);
    EXPECT_EQ(profile_from_json(text).error().code, Code::invalid);
    EXPECT_EQ(sim::machine_from_json(text, "m").error().code, Code::invalid);
    std::ofstream(file()) << text;
    EXPECT_FALSE(KnownApis().find(api_rows().front()).has_value());
  }
}

TEST(TextFile, OfNoEndIsRefused) { EXPECT_EQ(read_text_file("/dev/zero", 1U << 20U).error().code, Code::invalid); }

}  // namespace
}  // namespace shunt
