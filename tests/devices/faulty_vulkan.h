// What can go wrong with faulty_vulkan.cpp, a library of its own that SHUNT_VULKAN_LIBRARY names.
#pragma once

#include <cstdint>

namespace shunt::test {

enum class VulkanFault : std::uint8_t {
  none,
  allocation_fails,
  submit_loses_device,
  wait_loses_device,
  never_completes,
};

}  // namespace shunt::test

extern "C" void set_vulkan_fault(shunt::test::VulkanFault chosen);
