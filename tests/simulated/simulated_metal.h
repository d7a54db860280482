// Devices on the simulated Metal, for tests. They show the flow of calls, not how Apple's machines behave.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "devices/discovery/registry.h"
#include "simulated/metal_control.h"

namespace shunt::simulated {

// Opens Metal on the simulation for its own lifetime.
class MetalSimulation {
 public:
  explicit MetalSimulation(const char* library = SHUNT_SIMULATED_METAL) {
    EXPECT_EQ(setenv("SHUNT_METAL_LIBRARY", library, 1), 0);
  }
  ~MetalSimulation() {
    set_fault(MetalFault::none);
    EXPECT_EQ(unsetenv("SHUNT_METAL_LIBRARY"), 0);
  }
  MetalSimulation(const MetalSimulation&) = delete;
  MetalSimulation& operator=(const MetalSimulation&) = delete;

  [[nodiscard]] static BackendReport open() {
    auto report = open_metal({});
    if (!report) {
      ADD_FAILURE() << report.error().message;
      return {};
    }
    return std::move(*report);
  }

  static void set_fault(MetalFault fault, std::int64_t code = 0) { control().set_fault(fault, code); }

  [[nodiscard]] static const MetalControl& control() {
    static const MetalControl* const kControl = [] {
      void* const library = dlopen(SHUNT_SIMULATED_METAL, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        ADD_FAILURE() << dlerror();
        std::abort();
      }
      return reinterpret_cast<const MetalControl* (*)()>(dlsym(library, kMetalControlName))();
    }();
    return *kControl;
  }
};

}  // namespace shunt::simulated
