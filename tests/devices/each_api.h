// Tests that run on the devices of every row of backends.def except the CPU, whose own tests are stricter.
//
// A machine without a device of an API skips that API's tests and says why. If SHUNT_EXPECT_APIS (names separated by
// spaces, set by ./dev test once it has installed what they need) names the API, its absence is a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "devices/discovery/registry.h"

namespace shunt::test {

inline std::vector<std::string> all_apis() {
  std::vector<std::string> names;
#define SHUNT_BACKEND(name, ...) names.emplace_back(#name);
#include "devices/backends.def"
  return names;
}

inline std::vector<std::string> apis_beside_the_cpu() {
  std::vector<std::string> names = all_apis();
  std::erase(names, "cpu");
  return names;
}

inline bool is_expected(const std::string& api) {
  const char* expected = std::getenv("SHUNT_EXPECT_APIS");
  std::istringstream words(expected == nullptr ? "" : expected);
  for (std::string word; words >> word;)
    if (word == api) return true;
  return false;
}

// SwiftShader compiles kernels many times as slowly as other drivers.
inline bool is_swiftshader(const Device& device) { return device.info().name.contains("SwiftShader"); }

// Returns the devices without SwiftShader, or all if there is no other.
inline std::vector<Device*> quick_ones(const std::vector<Device*>& devices) {
  std::vector<Device*> quick = devices;
  std::erase_if(quick, [](const Device* device) { return is_swiftshader(*device); });
  return quick.empty() ? devices : quick;
}

class EachApi : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
#ifdef SHUNT_SANITIZE_THREADS
    if (GetParam() != "sim") GTEST_SKIP() << "ThreadSanitizer cannot see into the driver of " << GetParam();
#endif
    // Outside a browser, WebGL2 is the stand-in that the tests build.
    ASSERT_EQ(setenv("SHUNT_WEBGL_LIBRARY", SHUNT_WEBGL_ON_EGL, 1), 0);
    auto registry = open_devices({.devices = GetParam(), .threads = 2});
    ASSERT_TRUE(registry.has_value()) << registry.error().message;
    registry_ = std::move(*registry);
    devices_ = registry_.devices();
    if (!devices_.empty()) return;
    std::string why;
    for (const BackendReport& backend : registry_.backends)
      if (backend.api == GetParam()) why = backend.absent_because;
    if (is_expected(GetParam())) FAIL() << GetParam() << " is absent: " << why;
    GTEST_SKIP() << GetParam() << " is absent: " << why;
  }

  Registry registry_;
  std::vector<Device*> devices_;
};

// Instantiates a suite for APIs and names each instance after its API.
#define SHUNT_FOR_APIS(suite, apis) \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, testing::ValuesIn(apis), [](const auto& test) { return test.param; })
#define SHUNT_FOR_EACH_API(suite) SHUNT_FOR_APIS(suite, shunt::test::apis_beside_the_cpu())

}  // namespace shunt::test
