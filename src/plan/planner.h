// Makes plans: places units on devices by predicted cost, orders transfers, and assigns storage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "devices/device.h"
#include "plan/plan.h"

namespace shunt {

struct PlanRequest {
  const Graph* graph = nullptr;
  std::span<Device* const> devices;  // candidates
  // By hand: for each node the index of its device; empty: the planner decides.
  std::vector<std::uint32_t> device_of_node;
  bool fuse = true;  // let devices claim fused rows
};

// Errors: unsupported where no device can run an op, with each device's reason; invalid for a placement by
// hand that is out of range.
[[nodiscard]] Result<Plan> make_plan(const PlanRequest& request);

}  // namespace shunt
