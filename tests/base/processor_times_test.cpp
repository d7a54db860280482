#include "base/system/processor_times.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace shunt {
namespace {

// A machine's proc/ in a temporary folder.
class ProcessorTimesOf : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_ / "proc"); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] auto times(const std::string& stat) const {
    std::ofstream(root_ / "proc/stat") << stat;
    return processor_times(root_);
  }

  const std::filesystem::path root_ = testing::TempDir() + "/shunt-processor-times-" + std::to_string(::getpid());
};

TEST_F(ProcessorTimesOf, AMachineAreThoseOfItsAllowedProcessorsUnlessTheyAreIdle) {
  const auto allowed = allowed_processors();
  ASSERT_FALSE(allowed.empty());
  const double tick_s = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto of = [&](std::uint32_t processor) { return "cpu" + std::to_string(processor); };
  const auto found = times("cpu  900 900 900 900 900 900 900 900 0 0\n" + of(allowed[0]) +
                           " 100 20 30 5000 7000 4 5 6 50 0\n" + of(100'000) + " 1 1 1 1 1 1 1 1 0 0\nintr 5 6\n");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->processors, 1U);
  EXPECT_NEAR(found->all_s, 165 * tick_s, 1e-9);
}

TEST_F(ProcessorTimesOf, AMachineThatDoesNotTellAreUnknown) {
  EXPECT_FALSE(processor_times(root_).has_value());
  for (const char* text : {"", "cpu 1 2 3 4 5 6 7 8\n", "cpu0\n", "cpu0 1 2 3\n", "cpux 1 2 3 4 5 6 7 8\n"})
    EXPECT_FALSE(times(text).has_value()) << text;
}

TEST(ProcessorTimesHere, GrowWithTheWorkOfThisProcess) {
  const auto before = processor_times();
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->processors, allowed_processors().size());
  volatile double sum = 0;
  std::optional<ProcessorTimes> after;
  do {
    for (int i = 0; i < 100'000; ++i) sum = sum + i;
    after = processor_times();
    ASSERT_TRUE(after.has_value());
  } while (after->own_s - before->own_s < 0.05);
  EXPECT_GE(after->wall_s - before->wall_s, 0.04 / before->processors);
  EXPECT_GE(after->all_s, before->all_s);
}

}  // namespace
}  // namespace shunt
