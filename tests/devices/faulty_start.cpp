// A library that does not survive its start: what SHUNT_VULKAN_LIBRARY names in tests of the probe. How it fails is
// what SHUNT_FAULTY_START says: "crash", "hang", or else it answers nothing.
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
