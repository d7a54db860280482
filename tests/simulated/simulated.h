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

// Sets a variable of the environment for its own lifetime; empty: leaves it unset.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (!value.empty()) {
      EXPECT_EQ(setenv(name, value.c_str(), 1), 0);
    }
  }
  ~Variable() { EXPECT_EQ(unsetenv(name_), 0); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// Has devices run kernels of another compute capability.
class Target : public Variable {
 public:
  explicit Target(const std::string& target) : Variable("SHUNT_CUDA_TARGET", target) {}
};

}  // namespace shunt::simulated
