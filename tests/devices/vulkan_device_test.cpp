// Failures of Vulkan reach the surface: as the right code, at the right event, with nothing hung.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "devices/each_api.h"
#include "devices/faulty_vulkan.h"
#include "devices/one_add.h"

namespace shunt {
namespace {

using test::VulkanFault;

class VulkanFaults : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("SHUNT_VULKAN_LIBRARY", SHUNT_FAULTY_VULKAN, 1), 0);
    registry_ = *open_devices({.devices = "vulkan"});
    if (registry_.devices().empty()) {
      if (test::is_expected("vulkan")) FAIL() << "vulkan is absent";
      GTEST_SKIP() << "vulkan is absent";
    }
    device_ = registry_.devices().front();
    library_ = dlopen(SHUNT_FAULTY_VULKAN, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library_, nullptr);
    set_fault_ = reinterpret_cast<decltype(&set_vulkan_fault)>(dlsym(library_, "set_vulkan_fault"));
  }
  void TearDown() override {
    if (set_fault_ != nullptr) set_fault_(VulkanFault::none);
    registry_ = {};
    if (library_ != nullptr) dlclose(library_);
    unsetenv("SHUNT_VULKAN_LIBRARY");
  }

  Registry registry_;
  Device* device_ = nullptr;
  void* library_ = nullptr;
  decltype(&set_vulkan_fault) set_fault_ = nullptr;
};

TEST_F(VulkanFaults, WithoutAFaultTheLibraryIsTheRealOne) {
  test::OneAdd add(*device_);
  ASSERT_TRUE(add.status()) << add.status().error().message;
  EXPECT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>{11, 22, 33, 44}));
  EXPECT_TRUE(device_->health().status.has_value());
}

TEST_F(VulkanFaults, AnAllocationThatFailsIsOutOfMemoryAndTheDeviceGoesOn) {
  set_fault_(VulkanFault::allocation_fails);
  const auto refused = device_->allocate(1024, BufferUse::values);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_NE(refused.error().message.find("1024 bytes"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(device_->health().status.has_value());
  set_fault_(VulkanFault::none);
  EXPECT_TRUE(device_->allocate(1024, BufferUse::values).has_value());
}

TEST_F(VulkanFaults, MoreThanTheDriverGivesIsOutOfMemory) {
  const auto refused = device_->allocate(std::uint64_t{1} << 46U, BufferUse::values);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
}

void expect_the_end(Device& device, Code code) {
  const Health health = device.health();
  ASSERT_FALSE(health.status.has_value());
  EXPECT_EQ(health.status.error().code, code);
  EXPECT_EQ(health.epoch, 1U);
  const auto refused = device.allocate(16, BufferUse::values);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, code);
}

TEST_F(VulkanFaults, ADeviceLostAtSubmissionEndsTheEvent) {
  test::OneAdd add(*device_);
  set_fault_(VulkanFault::submit_loses_device);
  const Status done = add.run();
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::device_lost);
  set_fault_(VulkanFault::none);
  expect_the_end(*device_, Code::device_lost);
  EXPECT_EQ(add.run().error().code, Code::device_lost) << "what is lost stays lost";
}

TEST_F(VulkanFaults, ADeviceLostLateEndsTheEventOfThatSubmission) {
  test::OneAdd add(*device_);
  set_fault_(VulkanFault::wait_loses_device);
  const Status done = add.run();
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::device_lost);
  EXPECT_NE(done.error().message.find("one add"), std::string::npos) << done.error().message;
  set_fault_(VulkanFault::none);
  expect_the_end(*device_, Code::device_lost);
}

TEST_F(VulkanFaults, ASubmissionThatNeverCompletesTimesOut) {
  test::OneAdd add(*device_);
  set_fault_(VulkanFault::never_completes);
  const Status done = add.run(std::chrono::nanoseconds(0));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::timed_out);
  set_fault_(VulkanFault::none);
  expect_the_end(*device_, Code::timed_out);
}

TEST(Vulkan, WithoutItsLibraryItIsAbsentAndSaysWhy) {
  ASSERT_EQ(setenv("SHUNT_VULKAN_LIBRARY", "/nowhere/libvulkan.so.1", 1), 0);
  const Registry registry = *open_devices({.devices = "vulkan"});
  unsetenv("SHUNT_VULKAN_LIBRARY");
  EXPECT_TRUE(registry.devices().empty());
  const auto vulkan = std::ranges::find(registry.backends, "vulkan", &BackendReport::api);
  ASSERT_NE(vulkan, registry.backends.end());
  EXPECT_NE(vulkan->absent_because.find("/nowhere/libvulkan.so.1"), std::string::npos) << vulkan->absent_because;
}

}  // namespace
}  // namespace shunt
