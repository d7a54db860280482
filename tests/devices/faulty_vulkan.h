// What can go wrong with faulty_vulkan.cpp, a library of its own that SHUNT_VULKAN_LIBRARY names, and what its devices
// can pretend to be.
//
// SHUNT_VULKAN_PRETENDS has words parted by spaces: "discrete" (memory of its own, so that bytes are staged),
// "integrated" (a GPU that shares the host's memory, and takes it in place), "queues"
// (a family of queues that only copies), "fences" (no timeline semaphores), "limits" (too few storage buffers).
#pragma once

#include <cstdint>

namespace shunt::test {

enum class VulkanFault : std::uint8_t {
  none,
  allocation_fails,
  submit_loses_device,
  wait_loses_device,
  never_completes,
  holds_submissions,  // they begin with release_vulkan_submissions(), or never
};

}  // namespace shunt::test

// `after`: so many calls that it concerns go well before.
extern "C" void set_vulkan_fault(shunt::test::VulkanFault chosen, int after);
// Begins what was held, in its order, and waits until it has ended.
extern "C" void release_vulkan_submissions();
// Calls of vkAllocateMemory and vkFreeMemory so far: how many blocks are in use.
extern "C" int vulkan_blocks();
// Calls of vkQueueSubmit so far.
extern "C" int vulkan_submissions();
