// The driver's compiled kernels, kept on disk: one file per device and driver in the cache folder.
//
// A file that is damaged, or of another device or driver, is ignored; without a folder nothing is kept. Owned by
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

// The file's name identifies device and driver.
[[nodiscard]] std::string cache_file_name(const VkPhysicalDeviceProperties& properties);
// Prepends our header to a driver's data.
[[nodiscard]] std::vector<std::byte> seal_cache(const VkPhysicalDeviceProperties& properties,
                                                std::span<const std::byte> data);
// Returns the driver's data; empty unless seal_cache() made the content for that device and driver.
[[nodiscard]] std::span<const std::byte> unseal_cache(const VkPhysicalDeviceProperties& properties,
                                                      std::span<const std::byte> content);

class PipelineCache {
 public:
  // Starts empty if there is no file.
  explicit PipelineCache(std::shared_ptr<Context> context);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  // Null if the driver has no cache.
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
