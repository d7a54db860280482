// Launch times and transfer speeds: the measurement recovers what a simulated device was given, on its virtual clock.
#include "run/measure/device_rates.h"

#include <gtest/gtest.h>

#include "devices/discovery/registry.h"
#include "devices/sim/device.h"

namespace shunt {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

struct Machine {
  std::shared_ptr<sim::VirtualClock> clock = std::make_shared<sim::VirtualClock>();
  std::unique_ptr<Device> device;
  explicit Machine(sim::Spec spec) : device(sim::make_sim_device(std::move(spec), clock)) {}
};

sim::Spec spec_of(double launch_us, double op_us, double bytes_per_s) {
  return {.computes = false,
          .launch_us = launch_us,
          .op_us = op_us,
          .rate = {.flops_per_s = 1e30, .bytes_per_s = bytes_per_s},
          .memory_bytes = 1024 * kMiB};
}

TEST(LaunchBench, FindsWhatASimulatedDeviceIsTold) {
  const Machine machine(spec_of(20, 3, 1e30));
  const auto bench = LaunchBench::create(*machine.device);
  ASSERT_TRUE(bench.has_value()) << bench.error().message;
  for (int repetition = 0; repetition < 2; ++repetition) {
    const auto cost = (*bench)->measure();
    ASSERT_TRUE(cost.has_value()) << cost.error().message;
    EXPECT_DOUBLE_EQ(cost->program_us, 23);
    EXPECT_DOUBLE_EQ(cost->op_us, 3);
  }
}

TEST(CopyBench, FindsTheBandwidthOfASimulatedDevice) {
  const Machine machine(spec_of(500, 0, 50e9));
  const LaunchCost launch{.program_us = 500};
  for (const std::uint64_t bytes : curve_sizes(*machine.device)) {
    const auto bench = CopyBench::create(*machine.device, bytes, launch);
    ASSERT_TRUE(bench.has_value()) << bench.error().message;
    const auto us = (*bench)->measure_us();
    ASSERT_TRUE(us.has_value()) << us.error().message;
    const double expected = static_cast<double>(bytes) / 50e9 * 1e6;
    EXPECT_NEAR(*us, expected, 0.01 * expected) << bytes;  // the simulation rounds a copy to whole nanoseconds
  }
}

TEST(CopyBench, WhatAnOpTakesBesidesMovingIsPartOfACopy) {
  const Machine machine(spec_of(100, 7, 1e9));
  const auto bench = LaunchBench::create(*machine.device);
  ASSERT_TRUE(bench.has_value()) << bench.error().message;
  const auto launch = (*bench)->measure();
  ASSERT_TRUE(launch.has_value());
  const auto copies = CopyBench::create(*machine.device, 4096, *launch);
  ASSERT_TRUE(copies.has_value()) << copies.error().message;
  EXPECT_NEAR(*(*copies)->measure_us(), 7 + 4.096, 0.02);
}

TEST(CopyBench, ADeviceThatLacksTheOpSaysSo) {
  sim::Spec spec = spec_of(1, 1, 1e9);
  spec.lacks = {Op::copy};
  const Machine machine(spec);
  const auto bench = LaunchBench::create(*machine.device);
  ASSERT_FALSE(bench.has_value());
  EXPECT_EQ(bench.error().code, Code::unsupported);
  EXPECT_NE(bench.error().message.find("copy"), std::string::npos) << bench.error().message;
}

TEST(CurveSizes, ArePowersOfFourUpToAQuarterOfTheMemory) {
  const auto sizes_with = [](std::uint64_t memory_bytes) {
    sim::Spec spec = spec_of(1, 1, 1e9);
    spec.memory_bytes = memory_bytes;
    return curve_sizes(*Machine(spec).device);
  };
  const std::vector<std::uint64_t> small = sizes_with(kMiB);
  EXPECT_EQ(small, (std::vector<std::uint64_t>{4096, 16384, 65536, 262144}));
  EXPECT_EQ(sizes_with(kMiB * kMiB).back(), 1024 * kMiB);
  EXPECT_TRUE(sizes_with(4096).empty());
}

TEST(DeviceRates, AreMeasuredOnTheProcessor) {
  const Registry registry = *open_devices({.devices = "cpu", .threads = 2});
  for (Device* device : registry.devices()) {
    const auto bench = LaunchBench::create(*device);
    ASSERT_TRUE(bench.has_value()) << bench.error().message;
    const auto launch = (*bench)->measure();
    ASSERT_TRUE(launch.has_value());
    EXPECT_GT(launch->program_us, 0);
    const auto copies = CopyBench::create(*device, kMiB, *launch);
    ASSERT_TRUE(copies.has_value()) << copies.error().message;
    const auto us = (*copies)->measure_us();
    ASSERT_TRUE(us.has_value());
    EXPECT_GT(*us, 0);
  }
}

}  // namespace
}  // namespace shunt
