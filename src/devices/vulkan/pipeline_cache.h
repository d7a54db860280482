// What the driver made of kernels, kept on disk for the next time: one file per device and driver in the folder of
// caches.
//
// A file that is not whole, or another device's or driver's, counts as none; without a folder nothing is kept. Owned by
// Pipelines; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/vulkan/context.h"

namespace shunt::vulkan {

// The file's name tells devices and drivers apart.
[[nodiscard]] std::string cache_file_name(const VkPhysicalDeviceProperties& properties);
// Puts a header before a driver's data.
[[nodiscard]] std::vector<std::byte> seal_cache(const VkPhysicalDeviceProperties& properties,
                                                std::span<const std::byte> data);
// The driver's data; empty if the content is not what seal_cache() made for that device and driver.
[[nodiscard]] std::span<const std::byte> unseal_cache(const VkPhysicalDeviceProperties& properties,
                                                      std::span<const std::byte> content);

class PipelineCache {
 public:
  // Empty where there is no file.
  explicit PipelineCache(std::shared_ptr<Context> context);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  // Null where the driver has none.
  [[nodiscard]] VkPipelineCache get() const { return cache_; }
  // Writes the file if there is anything new.
  void save() const;

 private:
  void write() const;
  [[nodiscard]] std::vector<std::byte> data() const;

  std::shared_ptr<Context> context_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::uint64_t loaded_hash_ = 0;
};

}  // namespace shunt::vulkan
