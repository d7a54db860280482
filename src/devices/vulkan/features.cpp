#include "devices/vulkan/features.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/shader.h"

namespace shunt::vulkan {
namespace {

// Links one feature structure after another.
class Linker {
 public:
  explicit Linker(VkPhysicalDeviceFeatures2& first) : end_(&first.pNext) {}
  template <class Structure>
  void link(Structure& structure, VkStructureType type) {
    structure.sType = type;
    *end_ = &structure;
    end_ = &structure.pNext;
  }

 private:
  void** end_;
};

std::vector<std::string> extensions_of(const InstanceFunctions& api, VkPhysicalDevice physical) {
  std::uint32_t count = 0;
  if (api.EnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkExtensionProperties> found(count);
  if (api.EnumerateDeviceExtensionProperties(physical, nullptr, &count, found.data()) != VK_SUCCESS) return {};
  std::vector<std::string> names;
  for (const VkExtensionProperties& each : found) names.emplace_back(each.extensionName);
  return names;
}

std::string_view name_of(ComponentType type) {
  switch (type) {
    case ComponentType::float16:
      return "f16";
    case ComponentType::float32:
      return "f32";
    case ComponentType::sint8:
      return "i8";
    case ComponentType::uint8:
      return "u8";
    case ComponentType::sint32:
      return "i32";
    case ComponentType::uint32:
      return "u32";
    default:
      return "other";
  }
}

}  // namespace

Status check_limits(const VkPhysicalDeviceProperties& properties) {
  const VkPhysicalDeviceLimits& limits = properties.limits;
  constexpr std::uint32_t kStorageBuffers = kShaderBindings - kOutputBinding;
  constexpr std::uint32_t kMostGroups = 65535;
  const struct {
    const char* name;
    std::uint64_t has;
    std::uint64_t needed;
  } needs[] = {
      {"maxComputeWorkGroupInvocations", limits.maxComputeWorkGroupInvocations, kShaderGroupSize},
      {"maxComputeWorkGroupSize[0]", limits.maxComputeWorkGroupSize[0], kShaderGroupSize},
      {"maxComputeWorkGroupCount[0]", limits.maxComputeWorkGroupCount[0], kMostGroups},
      {"maxComputeWorkGroupCount[1]", limits.maxComputeWorkGroupCount[1], kMostGroups},
      {"maxBoundDescriptorSets", limits.maxBoundDescriptorSets, 1},
      {"maxPerStageDescriptorStorageBuffers", limits.maxPerStageDescriptorStorageBuffers, kStorageBuffers},
      {"maxDescriptorSetStorageBuffers", limits.maxDescriptorSetStorageBuffers, kStorageBuffers},
      {"maxPerStageDescriptorUniformBuffers", limits.maxPerStageDescriptorUniformBuffers, kOutputBinding},
      {"maxDescriptorSetUniformBuffers", limits.maxDescriptorSetUniformBuffers, kOutputBinding},
      {"maxPerStageResources", limits.maxPerStageResources, kShaderBindings},
      {"maxUniformBufferRange", limits.maxUniformBufferRange, std::max(kCallBlockBytes, sizeof(Parameters))},
  };
  for (const auto& need : needs)
    if (need.has < need.needed)
      return fail(Code::unsupported, fmt::format("{}: {} is {}, and kernels need {}; another driver may have more",
                                                 properties.deviceName, need.name, need.has, need.needed));
  return {};
}

bool Features::multiplies_f16_by_16() const {
  using enum ComponentType;
  return std::ranges::any_of(matrices, [](const MatrixShape& shape) {
    return shape.m == 16 && shape.n == 16 && shape.k == 16 &&
           shape.types == std::array{float16, float16, float32, float32};
  });
}

void Features::describe(DeviceInfo& info) const {
  info.driver = driver;
  info.pci_address = pci_address;
  info.compute_units = compute_units;
  info.shared_memory_bytes = shared_memory_bytes;
  info.largest_workgroup = largest_workgroup;
  info.subgroup_size = subgroup;
  info.features = {DeviceFeature::atomics, DeviceFeature::shared_memory};
  info.features.insert(DeviceFeature::fp16, f16);
  info.features.insert(DeviceFeature::fp64, f64);
  info.features.insert(DeviceFeature::int8, integer_dot);
  info.features.insert(DeviceFeature::subgroups, subgroup_arithmetic);
  info.features.insert(DeviceFeature::cooperative_matrix, !matrices.empty());
  if (chooses_subgroup && smallest_subgroup != largest_subgroup)
    info.details.push_back(fmt::format("subgroups of {} to {}", smallest_subgroup, largest_subgroup));
  for (const MatrixShape& shape : matrices) {
    std::string words =
        fmt::format("{}x{}x{} {} to {}", shape.m, shape.n, shape.k, name_of(shape.types[0]), name_of(shape.types[3]));
    if (std::ranges::find(info.details, words) == info.details.end()) info.details.push_back(std::move(words));
  }
}

FeatureChain::FeatureChain(const Instance& instance, VkPhysicalDevice physical,
                           const VkPhysicalDeviceProperties& properties)
    : instance_(instance),
      physical_(physical),
      version_(properties.apiVersion),
      offered_(extensions_of(instance.functions(), physical)) {
  link();
  ask_features();
  features_.shared_memory_bytes = properties.limits.maxComputeSharedMemorySize;
  features_.largest_workgroup =
      std::min(properties.limits.maxComputeWorkGroupInvocations, properties.limits.maxComputeWorkGroupSize[0]);
  features_.memory_budget = offers(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, 0);
  features_.reads_clocks = offers(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME, 0);
  ask_properties();
  if (matrix_.cooperativeMatrix != VK_FALSE) ask_matrices();
}

bool FeatureChain::lists(const char* extension) const {
  return std::ranges::find(offered_, extension) != offered_.end();
}

bool FeatureChain::offers(const char* extension, std::uint32_t in_version) {
  if (in_version != 0 && version_ >= in_version) return true;
  if (!lists(extension)) return false;
  extensions_.push_back(extension);
  return true;
}

void FeatureChain::link() {
  core_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  Linker linker(core_);
  linker.link(storage16_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  if (offers(VK_KHR_8BIT_STORAGE_EXTENSION_NAME, VK_API_VERSION_1_2))
    linker.link(storage8_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES);
  if (offers(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2))
    linker.link(small_numbers_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  if (offers(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, VK_API_VERSION_1_3))
    linker.link(integer_dot_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  if (offers(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3))
    linker.link(subgroup_size_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  if (offers(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, VK_API_VERSION_1_2))
    linker.link(timeline_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
  if (!offers(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VK_API_VERSION_1_2)) return;
  linker.link(memory_model_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
  // Kernels with cooperative matrices use the Vulkan memory model.
  if (offers(kCooperativeMatrixExtension, 0)) linker.link(matrix_, kCooperativeMatrixFeaturesType);
}

void FeatureChain::ask_features() {
  instance_.functions().GetPhysicalDeviceFeatures2(physical_, &core_);
  const VkPhysicalDeviceFeatures all = core_.features;
  core_.features = {};
  core_.features.shaderFloat64 = all.shaderFloat64;
  core_.features.shaderInt16 = all.shaderInt16;
  core_.features.shaderInt64 = all.shaderInt64;
  matrix_.cooperativeMatrixRobustBufferAccess = VK_FALSE;
  features_.f64 = all.shaderFloat64 != VK_FALSE;
  features_.int16 = all.shaderInt16 != VK_FALSE;
  features_.int64 = all.shaderInt64 != VK_FALSE;
  features_.f16 = small_numbers_.shaderFloat16 != VK_FALSE && storage16_.storageBuffer16BitAccess != VK_FALSE;
  features_.int8 = small_numbers_.shaderInt8 != VK_FALSE && storage8_.storageBuffer8BitAccess != VK_FALSE;
  features_.chooses_subgroup = subgroup_size_.subgroupSizeControl != VK_FALSE;
  features_.integer_dot = integer_dot_.shaderIntegerDotProduct != VK_FALSE;
  features_.timeline = timeline_.timelineSemaphore != VK_FALSE;
}

void FeatureChain::ask_properties() {
  VkPhysicalDeviceSubgroupProperties subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  VkPhysicalDeviceSubgroupSizeControlProperties choice{};
  choice.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{};
  host.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  VkPhysicalDeviceProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  all.pNext = &subgroup;
  const auto link = [&](auto& structure) {
    structure.pNext = all.pNext;
    all.pNext = &structure;
  };
  if (features_.chooses_subgroup) link(choice);
  const bool imports = offers(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, 0);
  if (imports) link(host);
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  if (offers(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME, VK_API_VERSION_1_2)) link(driver);
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
  pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
  const bool tells_pci = offers(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME, 0);
  if (tells_pci) link(pci);
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV of_nvidia{};
  of_nvidia.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
  if (lists(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) link(of_nvidia);
  VkPhysicalDeviceShaderCorePropertiesAMD of_amd{};
  of_amd.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD;
  if (lists(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) link(of_amd);
  instance_.functions().GetPhysicalDeviceProperties2(physical_, &all);
  constexpr VkSubgroupFeatureFlags kNeeded =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  features_.subgroup_arithmetic = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                                  (subgroup.supportedOperations & kNeeded) == kNeeded;
  features_.subgroup = subgroup.subgroupSize;
  features_.chooses_subgroup &= (choice.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  features_.smallest_subgroup = features_.chooses_subgroup ? choice.minSubgroupSize : subgroup.subgroupSize;
  features_.largest_subgroup = features_.chooses_subgroup ? choice.maxSubgroupSize : subgroup.subgroupSize;
  if (imports) features_.import_alignment_bytes = host.minImportedHostPointerAlignment;
  if (driver.driverName[0] != '\0') features_.driver = fmt::format("{} {}", driver.driverName, driver.driverInfo);
  if (tells_pci)
    features_.pci_address =
        fmt::format("{:04x}:{:02x}:{:02x}.{}", pci.pciDomain, pci.pciBus, pci.pciDevice, pci.pciFunction);
  features_.compute_units = of_nvidia.shaderSMCount + of_amd.shaderEngineCount * of_amd.shaderArraysPerEngineCount *
                                                          of_amd.computeUnitsPerShaderArray;
}

void FeatureChain::ask_matrices() {
  const auto ask =
      instance_.function<GetCooperativeMatrixProperties>("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  std::uint32_t count = 0;
  if (ask == nullptr || ask(physical_, &count, nullptr) != VK_SUCCESS) return;
  std::vector<CooperativeMatrixProperties> found(count);
  if (ask(physical_, &count, found.data()) != VK_SUCCESS) return;
  for (const CooperativeMatrixProperties& each : found)
    if (each.scope == kScopeSubgroup && each.saturatingAccumulation == VK_FALSE)
      features_.matrices.push_back(
          {each.MSize, each.NSize, each.KSize, {each.AType, each.BType, each.CType, each.ResultType}});
}

}  // namespace shunt::vulkan
