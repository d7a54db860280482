// The processor's two devices, and the ops that conformance tests run on them.
#pragma once

#include <string>
#include <vector>

#include "devices/cpu/device.h"
#include "run/verify/conformance.h"

namespace shunt::test {

// Three threads, so that work is split unevenly.
struct CpuDevices {
  explicit CpuDevices(std::uint32_t threads = 3)
      : engine(std::make_shared<cpu::Engine>(threads, std::span<const std::uint32_t>())) {}

  std::shared_ptr<cpu::Engine> engine;
  std::unique_ptr<Device> simd = cpu::make_cpu_device({.kernels = cpu::KernelSet::simd, .engine = engine});
  std::unique_ptr<Device> scalar = cpu::make_cpu_device({.kernels = cpu::KernelSet::scalar, .engine = engine});
};

inline std::vector<Op> running_ops() {
  std::vector<Op> found;
  for (std::size_t index = 0; index < ops().size(); ++index)
    if (ops()[index].can_be_sampled()) found.push_back(static_cast<Op>(index));
  return found;
}

inline std::string text_of(const ConformanceFailure& failure, std::uint64_t seed) {
  return failure.device + " " + failure.call + " seed " + std::to_string(seed) + " case " + to_string(failure.which) +
         ": " + failure.words;
}

}  // namespace shunt::test
