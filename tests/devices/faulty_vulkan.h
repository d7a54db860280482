// Faults of faulty_vulkan.cpp, a library to be named by SHUNT_VULKAN_LIBRARY, and what its devices can pretend to be.
//
// SHUNT_VULKAN_PRETENDS holds words separated by spaces: "discrete" (memory of its own, so bytes are staged),
// "integrated" (a GPU that shares and imports the host's memory), "queues" (a copy-only queue family), "fences" (no
// timeline semaphores), "limits" (too few storage buffers).
//
// SHUNT_VULKAN_FAULT holds faults separated by commas; it works with any program, for example:
//   SHUNT_VULKAN_LIBRARY=build/release/tests/libfaulty_vulkan.so SHUNT_VULKAN_FAULT="delay 50ms at submission 3"
// Submissions and allocations are counted from 0 in each process. `at` means that one, `from` that one and all later:
//   delay 50ms at submission 3   a thread starts it that much later, and later ones after it: it stays in flight
//   drop at submission 3         never executed, but signalled as complete
//   hang at submission 3         neither it nor any later one is executed or signalled
//   lose at submission 3         the call returns device lost; later calls work as usual
//   fail at allocation 3         out of memory
// Any other text aborts the process.
#pragma once

#include <cstdint>

namespace shunt::test {

enum class VulkanFault : std::uint8_t {
  none,
  allocation_fails,
  submit_loses_device,
  wait_loses_device,
  never_completes,
  holds_submissions,  // submissions start at release_vulkan_submissions(), or never
};

}  // namespace shunt::test

// Sets a fault that strikes after `after` affected calls have succeeded.
extern "C" void set_vulkan_fault(shunt::test::VulkanFault chosen, int after);
// Replaces SHUNT_VULKAN_FAULT and restarts the counts; "" clears all faults. Returns false if the text does not parse.
extern "C" bool set_vulkan_faults(const char* text);
// Clears all faults and starts the held submissions in order.
extern "C" void release_vulkan_submissions();
// Memory blocks in use: calls of vkAllocateMemory less those of vkFreeMemory.
extern "C" int vulkan_blocks();
// Calls of vkQueueSubmit so far.
extern "C" int vulkan_submissions();
