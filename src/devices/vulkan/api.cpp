#include "devices/vulkan/api.h"

#include <fmt/format.h>

namespace shunt::vulkan {
namespace {

template <class Function>
Function as(PFN_vkVoidFunction pointer) {
  return reinterpret_cast<Function>(pointer);
}

std::string_view name_of(VkResult result) {
  switch (result) {
#define SHUNT_CASE(name) \
  case name:             \
    return #name;
    SHUNT_CASE(VK_NOT_READY)
    SHUNT_CASE(VK_TIMEOUT)
    SHUNT_CASE(VK_ERROR_OUT_OF_HOST_MEMORY)
    SHUNT_CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    SHUNT_CASE(VK_ERROR_INITIALIZATION_FAILED)
    SHUNT_CASE(VK_ERROR_DEVICE_LOST)
    SHUNT_CASE(VK_ERROR_MEMORY_MAP_FAILED)
    SHUNT_CASE(VK_ERROR_LAYER_NOT_PRESENT)
    SHUNT_CASE(VK_ERROR_EXTENSION_NOT_PRESENT)
    SHUNT_CASE(VK_ERROR_FEATURE_NOT_PRESENT)
    SHUNT_CASE(VK_ERROR_INCOMPATIBLE_DRIVER)
    SHUNT_CASE(VK_ERROR_TOO_MANY_OBJECTS)
    SHUNT_CASE(VK_ERROR_FRAGMENTED_POOL)
    SHUNT_CASE(VK_ERROR_OUT_OF_POOL_MEMORY)
#undef SHUNT_CASE
    default:
      return "an error";
  }
}

Code code_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
      return Code::out_of_memory;
    case VK_ERROR_DEVICE_LOST:
      return Code::device_lost;
    case VK_TIMEOUT:
      return Code::timed_out;
    default:
      return Code::internal;
  }
}

}  // namespace

std::unexpected<Error> error_of(VkResult result, std::string_view what) {
  return fail(code_of(result), fmt::format("{}: {} ({})", what, name_of(result), static_cast<int>(result)));
}

Result<std::shared_ptr<Instance>> Instance::open() {
  std::shared_ptr<Instance> opened(new Instance);
  SHUNT_TRY_ASSIGN(opened->library_, SharedLibrary::open("libvulkan.so.1", "SHUNT_VULKAN_LIBRARY",
                                                         "on Debian and Ubuntu install libvulkan1"));
  const auto get = opened->library_.find<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr");
  opened->find_ = get;
  const auto create = get == nullptr ? nullptr : as<PFN_vkCreateInstance>(get(VK_NULL_HANDLE, "vkCreateInstance"));
  if (create == nullptr) return fail(Code::unsupported, "libvulkan.so.1 lacks vkCreateInstance; install another");
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "shunt";
  application.apiVersion = VK_API_VERSION_1_3;  // the highest to use; 1.1 is enough
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (const VkResult result = create(&info, nullptr, &opened->instance_); result != VK_SUCCESS)
    return fail(Code::unsupported,
                fmt::format("vkCreateInstance answered {}; a driver is needed (mesa-vulkan-drivers or the vendor's)",
                            name_of(result)));
#define SHUNT_VULKAN_LOAD(name) opened->functions_.name = as<PFN_vk##name>(get(opened->instance_, "vk" #name));
  SHUNT_VULKAN_INSTANCE_FUNCTIONS(SHUNT_VULKAN_LOAD)
#undef SHUNT_VULKAN_LOAD
  return opened;
}

Instance::~Instance() {
  if (instance_ != VK_NULL_HANDLE) functions_.DestroyInstance(instance_, nullptr);
}

DeviceFunctions Instance::device_functions(VkDevice device) const {
  DeviceFunctions functions;
  const auto find = [&](const char* name, const char* of_extension) {
    const PFN_vkVoidFunction found = functions_.GetDeviceProcAddr(device, name);
    return found != nullptr ? found : functions_.GetDeviceProcAddr(device, of_extension);
  };
#define SHUNT_VULKAN_LOAD(name) functions.name = as<PFN_vk##name>(find("vk" #name, "vk" #name "KHR"));
  SHUNT_VULKAN_DEVICE_FUNCTIONS(SHUNT_VULKAN_LOAD)
#undef SHUNT_VULKAN_LOAD
  return functions;
}

}  // namespace shunt::vulkan
