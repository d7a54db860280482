// The parts of VK_KHR_cooperative_matrix in use, which older headers lack.
//
// https://registry.khronos.org/vulkan/specs/latest/man/html/VK_KHR_cooperative_matrix.html. Plain data.
#pragma once

#include <cstdint>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace shunt::vulkan {

inline constexpr const char* kCooperativeMatrixExtension = "VK_KHR_cooperative_matrix";
inline constexpr auto kCooperativeMatrixFeaturesType = static_cast<VkStructureType>(1000506000);
inline constexpr auto kCooperativeMatrixPropertiesType = static_cast<VkStructureType>(1000506001);

enum class ComponentType : std::uint32_t {
  float16 = 0,
  float32 = 1,
  float64 = 2,
  sint8 = 3,
  sint16 = 4,
  sint32 = 5,
  sint64 = 6,
  uint8 = 7,
  uint16 = 8,
  uint32 = 9,
  uint64 = 10,
};

inline constexpr std::uint32_t kScopeSubgroup = 3;

// NOLINTBEGIN(readability-identifier-naming): the names are the API's
struct CooperativeMatrixFeatures {
  VkStructureType sType = kCooperativeMatrixFeaturesType;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

struct CooperativeMatrixProperties {
  VkStructureType sType = kCooperativeMatrixPropertiesType;
  void* pNext = nullptr;
  std::uint32_t MSize = 0;
  std::uint32_t NSize = 0;
  std::uint32_t KSize = 0;
  ComponentType AType{};
  ComponentType BType{};
  ComponentType CType{};
  ComponentType ResultType{};
  VkBool32 saturatingAccumulation = VK_FALSE;
  std::uint32_t scope = 0;
};
// NOLINTEND(readability-identifier-naming)

using GetCooperativeMatrixProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice physical, std::uint32_t* count,
                                                            CooperativeMatrixProperties* properties);

}  // namespace shunt::vulkan
