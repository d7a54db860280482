// A machine whose GPU is slower than its prior.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/own_cache.h"
#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "run/opened_devices.h"
#include "shunt/runtime.h"

namespace shunt::test {

class WrongBeliefs : public OwnCache {
 protected:
  // A processor, and a GPU that takes `slower` times as long as its prior says.
  std::unique_ptr<Runtime> machine(double slower) {
    constexpr double kFlops = 1e11;
    constexpr double kBytes = 1e10;
    sim::Spec gpu{.id = "gpu:0",
                  .launch_us = 1,
                  .op_us = 0.1,
                  .rate = {.flops_per_s = kFlops / slower, .bytes_per_s = kBytes / slower},
                  .believed = sim::Rate{.flops_per_s = kFlops, .bytes_per_s = kBytes},
                  .link = {.latency_us = 1, .bytes_per_s = 1e10}};
    sim::Spec cpu{.id = "cpu:0",
                  .type = DeviceType::cpu,
                  .launch_us = 1,
                  .op_us = 0.1,
                  .rate = {.flops_per_s = 1e10, .bytes_per_s = 1e9},
                  .memory_pool = "host"};
    return machine(std::vector{gpu, cpu});
  }
  std::unique_ptr<Runtime> machine(const std::vector<sim::Spec>& specs, bool calibrated = false) {
    BackendReport report{.api = "sim"};
    report.devices = sim::make_sim_devices(specs, std::make_shared<sim::VirtualClock>());
    Registry registry;
    registry.backends.push_back(std::move(report));
    return runtime_over(
        std::move(registry), std::make_unique<trace::Recorder>(0),
        {.calibrated = calibrated, .on_notice = [this](const std::string& text) { notices_.push_back(text); }});
  }

  std::vector<std::string> notices_;
};

}  // namespace shunt::test
