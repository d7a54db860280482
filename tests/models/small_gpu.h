// A slow processor, and fast GPUs with little memory.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "run/opened_devices.h"

namespace shunt::models {

// All are simulated, and what they do is recorded.
inline std::unique_ptr<Runtime> with_small_gpus(std::size_t gpus, std::uint64_t memory_bytes, double link_bytes_per_s) {
  std::vector<sim::Spec> specs(1 + gpus);
  specs[0] = {.id = "cpu",
              .type = DeviceType::cpu,
              .launch_us = 1,
              .op_us = 0,
              .rate = {.flops_per_s = 1e9, .bytes_per_s = 1e9},
              .memory_pool = "host"};
  for (std::size_t gpu = 0; gpu < gpus; ++gpu)
    specs[1 + gpu] = {.id = fmt::format("gpu:{}", gpu),
                      .type = DeviceType::discrete,
                      .launch_us = 1,
                      .op_us = 0,
                      .rate = {.flops_per_s = 1e12, .bytes_per_s = 1e12},
                      .link = {.latency_us = 1, .bytes_per_s = link_bytes_per_s},
                      .memory_bytes = memory_bytes};
  auto recorder = std::make_unique<trace::Recorder>();
  recorder->set_enabled(true);
  BackendReport report{.api = "sim"};
  report.devices = sim::make_sim_devices(specs, std::make_shared<sim::VirtualClock>());
  Registry registry;
  registry.backends.push_back(std::move(report));
  return runtime_over(std::move(registry), std::move(recorder));
}

inline std::unique_ptr<Runtime> with_small_gpu(std::uint64_t memory_bytes, double link_bytes_per_s) {
  return with_small_gpus(1, memory_bytes, link_bytes_per_s);
}

}  // namespace shunt::models
