// A library that does not survive its start, for SHUNT_VULKAN_LIBRARY in tests of the probe. SHUNT_FAULTY_START says
// how it fails: "crash", "hang", or otherwise no functions.
#include <unistd.h>
#include <vulkan/vulkan_core.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// NOLINTNEXTLINE(readability-identifier-naming): the name is the API's
extern "C" PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance, const char*) {
  const char* const set = std::getenv("SHUNT_FAULTY_START");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view how = set == nullptr ? "" : set;
  if (how == "crash") {
    static_cast<void>(std::fputs("the firmware is not what it was\n", stderr));
    static_cast<void>(std::raise(SIGSEGV));
  }
  while (how == "hang") pause();
  return nullptr;
}
