// Devices on the simulated driver, for tests. They show the flow of calls, not how a GPU behaves.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "devices/discovery/registry.h"
#include "simulated/control.h"

namespace shunt::simulated {

// Opens CUDA and HIP on the simulated driver for its own lifetime.
class Simulation {
 public:
  explicit Simulation(const char* library = SHUNT_SIMULATED_DRIVER) {
    for (const char* name : kVariables) EXPECT_EQ(setenv(name, library, 1), 0);
  }
  ~Simulation() {
    control().set_fault(Fault::none);
    for (const char* name : kVariables) EXPECT_EQ(unsetenv(name), 0);
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  [[nodiscard]] static BackendReport open(const std::string& api) {
    auto report = api == "cuda" ? open_cuda({}) : open_hip({});
    if (!report) {
      ADD_FAILURE() << report.error().message;
      return {};
    }
    return std::move(*report);
  }

  [[nodiscard]] static const Control& control() {
    static const Control* const kControl = [] {
      void* const library = dlopen(SHUNT_SIMULATED_DRIVER, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        ADD_FAILURE() << dlerror();
        std::abort();
      }
      return reinterpret_cast<const Control* (*)()>(dlsym(library, kControlName))();
    }();
    return *kControl;
  }

 private:
  static constexpr const char* kVariables[] = {"SHUNT_CUDA_LIBRARY", "SHUNT_HIP_LIBRARY"};
};

// Has devices run kernels of an earlier compute capability for its own lifetime; empty: of their own.
class Target {
 public:
  explicit Target(const std::string& target) {
    if (!target.empty()) {
      EXPECT_EQ(setenv("SHUNT_CUDA_TARGET", target.c_str(), 1), 0);
    }
  }
  ~Target() { EXPECT_EQ(unsetenv("SHUNT_CUDA_TARGET"), 0); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
};

}  // namespace shunt::simulated
