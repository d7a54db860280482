// A machine of simulated devices for planner tests.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "devices/sim/device.h"
#include "plan/costs/cost.h"

namespace shunt::test {

// Simulated devices of one machine; the first is the host processor.
struct SimulatedMachine {
  explicit SimulatedMachine(std::vector<sim::Spec> specs) {
    specs.front().memory_pool = kHostPool;
    const auto clock = std::make_shared<sim::VirtualClock>();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      specs[i].id = "sim:" + std::to_string(i);
      owned.push_back(sim::make_sim_device(specs[i], clock, nullptr));
      devices.push_back(owned.back().get());
      costs.emplace_back(owned.back()->info(), nullptr);
    }
  }
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices;
  std::vector<DeviceCost> costs;
};

// Returns a processor and a GPU that is a hundred times as fast.
inline std::vector<sim::Spec> processor_and_gpu(double link_bytes_per_s) {
  std::vector<sim::Spec> specs(2);
  specs[0].rate = {.flops_per_s = 1e10, .bytes_per_s = 1e11};
  specs[1].rate = {.flops_per_s = 1e12, .bytes_per_s = 1e12};
  specs[1].link.bytes_per_s = link_bytes_per_s;
  return specs;
}

// Returns devices of one machine with different speeds, latencies and links.
inline std::vector<sim::Spec> random_devices(std::mt19937& random, std::size_t count) {
  std::vector<sim::Spec> specs(count);
  for (sim::Spec& spec : specs) {
    spec.rate = {.flops_per_s = 1e9 * static_cast<double>(10 + random() % 40),
                 .bytes_per_s = 1e9 * static_cast<double>(1 + random() % 10)};
    spec.launch_us = static_cast<double>(random() % 20);
    spec.link.bytes_per_s = 1e9 * static_cast<double>(1 + random() % 20);
  }
  return specs;
}

}  // namespace shunt::test
