// Submissions that SHUNT_VULKAN_FAULT delays, drops or loses: work in flight ends correctly or with an error, and
// outlives whatever is closed.
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "devices/each_api.h"
#include "devices/faulty_vulkan.h"
#include "devices/one_add.h"
#include "devices/vulkan_faults.h"

namespace shunt {
namespace {

const std::vector<float> kSum{11, 22, 33, 44};

// A device with host-visible memory, so that a program's run is exactly one submission.
class VulkanInFlight : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("SHUNT_VULKAN_LIBRARY", SHUNT_FAULTY_VULKAN, 1), 0);
    ASSERT_EQ(setenv("SHUNT_VULKAN_PRETENDS", "integrated", 1), 0);
    registry_ = *open_devices({.devices = "vulkan"});
    if (registry_.devices().empty()) {
      if (test::is_expected("vulkan")) FAIL() << "vulkan is absent";
      GTEST_SKIP() << "vulkan is absent";
    }
    device_ = registry_.devices().front();
    library_ = dlopen(SHUNT_FAULTY_VULKAN, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library_, nullptr);
    set_faults_ = reinterpret_cast<decltype(&set_vulkan_faults)>(dlsym(library_, "set_vulkan_faults"));
    release_ = reinterpret_cast<decltype(&release_vulkan_submissions)>(dlsym(library_, "release_vulkan_submissions"));
  }
  void TearDown() override {
    registry_ = {};
    if (release_ != nullptr) release_();
    if (library_ != nullptr) dlclose(library_);
    unsetenv("SHUNT_VULKAN_LIBRARY");
    unsetenv("SHUNT_VULKAN_PRETENDS");
  }
  void set_faults(const char* text) { EXPECT_TRUE(set_faults_(text)) << text; }

  Registry registry_;
  Device* device_ = nullptr;
  void* library_ = nullptr;
  decltype(&set_vulkan_faults) set_faults_ = nullptr;
  decltype(&release_vulkan_submissions) release_ = nullptr;
};

TEST_F(VulkanInFlight, ADelayedSubmissionEndsRightAndThoseBehindItToo) {
  test::OneAdd add(*device_);
  test::OneAdd other(*device_);
  set_faults("delay 20ms at submission 0");
  Event first = add.start();
  Event second = other.start();
  EXPECT_FALSE(first.poll());
  EXPECT_TRUE(second.wait().has_value());
  EXPECT_TRUE(first.wait().has_value());
  EXPECT_EQ(add.result(), kSum);
  EXPECT_EQ(other.result(), kSum);
}

// Closing waits for work that ends soon, and then nothing is kept.
TEST_F(VulkanInFlight, ADelayedSubmissionMayOutliveItsDeadlineAndAllThatIsClosed) {
  {
    test::OneAdd add(*device_);
    set_faults("delay 1500ms from submission 0");
    const Status late = add.run(std::chrono::nanoseconds(1));
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code, Code::timed_out);
    EXPECT_FALSE(device_->health().status.has_value());
  }
  registry_ = {};
}

TEST_F(VulkanInFlight, ADroppedSubmissionEndsAndHasComputedNothing) {
  test::OneAdd add(*device_);
  set_faults("drop at submission 0");
  ASSERT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>(4, 0)));
  ASSERT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), kSum);
}

TEST_F(VulkanInFlight, ASubmissionThatHangsTimesOutWithThoseBehindIt) {
  test::OneAdd add(*device_);
  test::OneAdd other(*device_);
  set_faults("hang at submission 0");
  Event first = add.start({.timeout = std::chrono::nanoseconds(1)});
  Event second = other.start();
  const Status late = first.wait();
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::timed_out);
  EXPECT_FALSE(second.wait().has_value());
}

TEST_F(VulkanInFlight, ADeviceIsLostAndMemoryRunsOutWhereTheTextSaysSo) {
  test::OneAdd add(*device_);
  set_faults("fail from allocation 0, lose at submission 1");
  constexpr std::uint64_t kMoreThanABlock = std::uint64_t{512} << 20U;
  const auto none = device_->allocate(kMoreThanABlock, BufferUse::values);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::out_of_memory);
  ASSERT_TRUE(add.run().has_value());
  const Status lost = add.run();
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::device_lost);
}

TEST_F(VulkanInFlight, ATextThatIsNoFaultIsRefused) {
  for (const char* wrong : {"sleep at submission 1", "delay at submission 1", "delay 5s at submission 1",
                            "drop 5ms at submission 1", "drop on submission 1", "drop at submission -1",
                            "drop at allocation 1", "drop at submission", "drop at submission 1 2"})
    EXPECT_FALSE(set_faults_(wrong)) << wrong;
  std::string why;
  const auto rules = test::vulkan_faults_of("delay 50ms from submission 3,hang at submission 7", why);
  ASSERT_TRUE(rules.has_value()) << why;
  ASSERT_EQ(rules->size(), 2U);
  EXPECT_EQ(rules->front().delay, std::chrono::milliseconds(50));
  EXPECT_TRUE(rules->front().concerns(4));
  EXPECT_FALSE(rules->front().concerns(2));
  EXPECT_FALSE(rules->back().concerns(8));
}

}  // namespace
}  // namespace shunt
