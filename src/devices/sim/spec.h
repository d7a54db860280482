// Describes a simulated device: how fast, how large, and when it fails. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/faults.h"
#include "ops/op.h"
#include "shunt/devices.h"

namespace shunt::sim {

// Reported by all simulated devices.
inline constexpr std::string_view kVendor = "simulated";

using Rate = ComputeRates;

// The link to the host and to the other devices of the simulated machine. Devices in the host's memory have none.
struct Link {
  double latency_us = 10;
  double bytes_per_s = 6e9;
  bool peers = true;  // copies from other devices without going through the host
};

// The bytes of a device's memory that another program has from some time on.
struct Taken {
  double at_us = 0;  // since the machine started
  std::uint64_t bytes = 0;
};

struct Spec {
  std::string id = "sim:0";
  std::string name = "simulated accelerator";
  DeviceType type = DeviceType::other;
  bool emulated = true;  // used only if it is named
  bool computes = true;  // false: takes its time, but has no memory and reads as zeros

  double launch_us = 10;  // of a program
  double op_us = 1;       // of each op within it
  Rate rate{.flops_per_s = 1e12, .bytes_per_s = 100e9};
  std::optional<Rate> believed;  // the prior it reports for all families; nullopt: the true rate
  double uncertainty = 0.1;      // of that prior, relative; from 0.5 on it must be measured
  std::map<std::string, Rate, std::less<>> rate_of_family;  // own rates of kernel families, by name: "linear"

  Link link;

  std::uint64_t memory_bytes = std::uint64_t{1} << 30U;
  std::uint64_t largest_binding_bytes = ~std::uint64_t{0};  // of one operand
  std::string memory_pool;       // empty: its own; devices that share one have equal memory_bytes and computes
  std::string memory_resource;   // empty: its pool; pools that share one share the same memory_bytes
  std::string compute_resource;  // empty: its own
  std::vector<Taken> taken;      // in the order of time
  DeviceFeatures features;
  std::vector<Op> lacks;  // ops that it does not support

  double watchdog_us = 10e6;  // a program that takes longer loses the device, as with a GPU's driver
  Faults faults;
};

}  // namespace shunt::sim
