// Predicted times: a roofline over the rates a device is believed to reach, and the cost of moving bytes.
#pragma once

#include "devices/device.h"

namespace shunt {

struct Prediction {
  double us = 0;
  double uncertainty_us = 0;
};

[[nodiscard]] Prediction predict_compute(const OpCall& call, const DeviceInfo& device);
// Zero within one memory pool.
[[nodiscard]] Prediction predict_transfer(std::uint64_t bytes, const DeviceInfo& from, const DeviceInfo& to);

}  // namespace shunt
