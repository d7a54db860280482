// The features of a Vulkan device beyond 1.1: queried once, by its version and extensions, and enabled if kernels or
// this backend can use them.
//
// Plain values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "devices/vulkan/api.h"
#include "devices/vulkan/cooperative_matrix.h"
#include "shunt/devices.h"

namespace shunt::vulkan {

// One size of matrices that a subgroup multiplies at once: result [m, n] = a [m, k] x b [k, n] + c.
struct MatrixShape {
  std::uint32_t m = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  std::array<ComponentType, 4> types{};  // of a, b, c and the result
};

struct Features {
  // Used by kernels.
  bool f16 = false;  // arithmetic, and storage buffers of it
  bool f64 = false;
  bool int8 = false;  // arithmetic, and storage buffers of it
  bool int16 = false;
  bool int64 = false;
  bool integer_dot = false;  // of four packed bytes
  std::uint32_t subgroup = 0;
  std::uint32_t smallest_subgroup = 0;  // kernels may ask for any power of two between these, if at all
  std::uint32_t largest_subgroup = 0;
  bool subgroup_arithmetic = false;  // and shuffles
  bool chooses_subgroup = false;
  std::vector<MatrixShape> matrices;  // cooperative matrices; empty: none
  std::uint32_t shared_memory_bytes = 0;
  std::uint32_t largest_workgroup = 0;
  // Used by the device.
  bool timeline = false;
  bool memory_budget = false;
  bool reads_clocks = false;                 // its own and the host's at once
  std::uint64_t import_alignment_bytes = 0;  // for using host memory in place; 0: it cannot
  std::string driver;                        // name and version; empty: unknown
  std::string pci_address;                   // empty: unknown
  std::uint32_t compute_units = 0;           // 0: unknown

  // Returns whether it multiplies cooperative matrices of 16 x 16 F16 by F16 to F32.
  [[nodiscard]] bool multiplies_f16_by_16() const;
  // Fills in what these features tell of a device.
  void describe(DeviceInfo& info) const;
};

// Checks the limits that kernels need of every device. Errors: unsupported, with the limit's name and both numbers.
[[nodiscard]] Status check_limits(const VkPhysicalDeviceProperties& properties);

// The feature structures that a device has, linked as Vulkan requires.
class FeatureChain {
 public:
  FeatureChain(const Instance& instance, VkPhysicalDevice physical, const VkPhysicalDeviceProperties& properties);
  ~FeatureChain() = default;
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;

  [[nodiscard]] const Features& features() const { return features_; }
  // For vkCreateDevice; valid while this lives.
  [[nodiscard]] const void* enabled() const { return &core_; }
  [[nodiscard]] const std::vector<const char*>& extensions() const { return extensions_; }

 private:
  // Returns whether the device lists an extension, without enabling it.
  [[nodiscard]] bool lists(const char* extension) const;
  // Returns whether the device has the extension, which it then enables, or has its content in its version.
  bool offers(const char* extension, std::uint32_t in_version);
  void link();
  void ask_features();
  void ask_properties();
  void ask_matrices();

  const Instance& instance_;
  VkPhysicalDevice physical_;
  std::uint32_t version_;
  std::vector<std::string> offered_;
  std::vector<const char*> extensions_;
  Features features_;

  VkPhysicalDeviceFeatures2 core_{};
  VkPhysicalDevice16BitStorageFeatures storage16_{};
  VkPhysicalDevice8BitStorageFeatures storage8_{};
  VkPhysicalDeviceShaderFloat16Int8Features small_numbers_{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures integer_dot_{};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size_{};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline_{};
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model_{};
  CooperativeMatrixFeatures matrix_{};
};

}  // namespace shunt::vulkan
