// What can go wrong with faulty_vulkan.cpp, a library of its own that SHUNT_VULKAN_LIBRARY names, and what its devices
// can pretend to be.
//
// SHUNT_VULKAN_PRETENDS has words parted by spaces: "discrete" (memory of its own, so that bytes are staged),
// "integrated" (a GPU that shares the host's memory, and takes it in place), "queues"
// (a family of queues that only copies), "fences" (no timeline semaphores), "limits" (too few storage buffers).
//
// SHUNT_VULKAN_FAULT has faults parted by commas, so that any program can have them, such as
//   SHUNT_VULKAN_LIBRARY=build/release/tests/libfaulty_vulkan.so SHUNT_VULKAN_FAULT="delay 50ms at submission 3"
// Submissions and allocations are counted from 0 in each process. `at` is for that one, `from` for all after it, too:
//   delay 50ms at submission 3   a thread begins it so much later, and those after it behind it: it is in flight
//   drop at submission 3         it is never executed, and its end is signalled
//   hang at submission 3         it is never executed, nor are those after it, and nothing is signalled
//   lose at submission 3         the call answers that the device is lost; after it the driver answers as before
//   fail at allocation 3         there is no memory
// Any other text ends the process.
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
// What SHUNT_VULKAN_FAULT may be, from now on, counted from now on; "": none. False for a text that says no faults.
extern "C" bool set_vulkan_faults(const char* text);
// No more faults: begins what was held, in its order.
extern "C" void release_vulkan_submissions();
// Calls of vkAllocateMemory and vkFreeMemory so far: how many blocks are in use.
extern "C" int vulkan_blocks();
// Calls of vkQueueSubmit so far.
extern "C" int vulkan_submissions();
