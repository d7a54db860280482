// Pipelines are kept on disk, and no file there can do harm.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "devices/each_api.h"
#include "devices/one_add.h"
#include "devices/vulkan/pipeline_cache.h"

namespace shunt {
namespace {

namespace fs = std::filesystem;

VkPhysicalDeviceProperties some_device() {
  VkPhysicalDeviceProperties properties{};
  properties.vendorID = 0x1234;
  properties.deviceID = 0x42;
  properties.driverVersion = 7;
  properties.pipelineCacheUUID[3] = 9;
  return properties;
}

std::vector<std::byte> data_of(const VkPhysicalDeviceProperties& device) {
  VkPipelineCacheHeaderVersionOne header{};
  header.headerSize = sizeof(header);
  header.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
  header.vendorID = device.vendorID;
  header.deviceID = device.deviceID;
  std::memcpy(header.pipelineCacheUUID, device.pipelineCacheUUID, VK_UUID_SIZE);
  std::vector<std::byte> data(sizeof(header) + 100, std::byte{5});
  std::memcpy(data.data(), &header, sizeof(header));
  return data;
}

TEST(VulkanCache, WhatWasSealedIsReadByTheSameDeviceAndDriverOnly) {
  const VkPhysicalDeviceProperties device = some_device();
  const std::vector<std::byte> data = data_of(device);
  const std::vector<std::byte> content = vulkan::seal_cache(device, data);
  EXPECT_TRUE(std::ranges::equal(vulkan::unseal_cache(device, content), data));
  for (int what = 0; what < 4; ++what) {
    VkPhysicalDeviceProperties other = device;
    if (what == 0) other.vendorID = 1;
    if (what == 1) other.deviceID = 1;
    if (what == 2) other.driverVersion = 8;
    if (what == 3) other.pipelineCacheUUID[0] = 1;
    EXPECT_TRUE(vulkan::unseal_cache(other, content).empty()) << what;
    EXPECT_NE(vulkan::cache_file_name(other), vulkan::cache_file_name(device)) << what;
  }
}

TEST(VulkanCache, AFileThatIsNotWholeCountsAsNone) {
  const VkPhysicalDeviceProperties device = some_device();
  const std::vector<std::byte> content = vulkan::seal_cache(device, data_of(device));
  for (std::size_t bytes = 0; bytes < content.size(); ++bytes)
    EXPECT_TRUE(vulkan::unseal_cache(device, std::span(content).first(bytes)).empty()) << bytes;
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::vector<std::byte> changed = content;
    changed[at] ^= std::byte{16};
    EXPECT_TRUE(vulkan::unseal_cache(device, changed).empty()) << at;
  }
  VkPhysicalDeviceProperties other = device;
  other.deviceID = 1;
  EXPECT_TRUE(vulkan::unseal_cache(device, vulkan::seal_cache(device, data_of(other))).empty())
      << "the driver's own header is another device's";
}

class VulkanCacheFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "shunt_cache_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    const char* before = std::getenv("SHUNT_CACHE_DIR");
    if (before != nullptr) before_ = before;
    use(folder_);
    if (!open_devices({.devices = "vulkan"})->devices().empty()) return;
    if (test::is_expected("vulkan")) FAIL() << "vulkan is absent";
    GTEST_SKIP() << "vulkan is absent";
  }
  void TearDown() override {
    fs::remove_all(folder_);
    if (before_.empty())
      unsetenv("SHUNT_CACHE_DIR");
    else
      setenv("SHUNT_CACHE_DIR", before_.c_str(), 1);
  }
  static void use(const fs::path& folder) { ASSERT_EQ(setenv("SHUNT_CACHE_DIR", folder.c_str(), 1), 0); }

  // Runs a kernel on a device and closes the device.
  static void compute() {
    const Registry registry = *open_devices({.devices = "vulkan"});
    test::OneAdd add(*registry.devices().front());
    EXPECT_TRUE(add.run().has_value());
    EXPECT_EQ(add.result(), (std::vector<float>{11, 22, 33, 44}));
  }
  // The files that devices left, including unfinished ones; the cache holds other things too.
  std::vector<fs::path> files() {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().filename().string().starts_with("vulkan-")) found.push_back(entry.path());
    return found;
  }

  fs::path folder_;
  std::string before_;
};

TEST_F(VulkanCacheFolder, ADeviceLeavesAFileAndReplacesOneThatIsSpoiled) {
  compute();
  ASSERT_EQ(files().size(), 1U) << "one device computed, and nothing unfinished is left";
  const fs::path file = files().front();
  const auto bytes = fs::file_size(file);
  std::ofstream(file, std::ios::binary) << "shuntvk1, but no more than this";
  compute();
  EXPECT_EQ(files(), std::vector{file});
  EXPECT_EQ(fs::file_size(file), bytes);
}

TEST_F(VulkanCacheFolder, WithoutAFolderADeviceWorks) {
  std::ofstream(folder_ / "file") << "no folder";
  use(folder_ / "file" / "below");
  compute();
}

}  // namespace
}  // namespace shunt
