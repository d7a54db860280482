// The CPU as two devices on one compute resource and one memory pool: cpu:simd runs Highway kernels,
// cpu:scalar the reference kernels, which every op has.
#pragma once

#include <memory>

#include "devices/cpu/engine.h"
#include "devices/device.h"
#include "trace/recorder.h"

namespace shunt::cpu {

// The reference stands in for ops that no other CPU kernels have.
inline constexpr std::string_view kScalarId = "cpu:scalar";

enum class KernelSet : std::uint8_t { simd, scalar };

struct CpuDeviceOptions {
  KernelSet kernels = KernelSet::simd;
  std::shared_ptr<Engine> engine;
  trace::Recorder* recorder = nullptr;
  std::string memory_pool = std::string(kHostPool);  // tests give two CPU devices separate pools to force copies
  std::string id;                                    // default "cpu:simd" or "cpu:scalar"
};

[[nodiscard]] std::unique_ptr<Device> make_cpu_device(CpuDeviceOptions options);
// Makes the same device on another engine; null if `device` was not made here.
[[nodiscard]] std::unique_ptr<Device> over(std::shared_ptr<Engine> engine, const Device& device);

}  // namespace shunt::cpu
