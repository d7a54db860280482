// Makes plans: places units on devices by predicted cost, orders transfers, and assigns storage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "devices/device.h"
#include "plan/costs/cost.h"
#include "plan/costs/cost_cache.h"
#include "plan/plan.h"

namespace shunt {

// Search for the placement with the least predicted time.
struct Search {
  // The index of the device that runs all that it can; kNone: the device of least predicted time.
  std::uint32_t preferred = kNone;
  bool strict = false;  // an op that the preferred device cannot run is an error
  // The share of its own time by which another device must beat the first one, and a mix of devices a single one.
  // Empty: margin_or_default().
  std::optional<double> margin = {};
  // The device whose memory already holds each tensor: weights, which other devices may copy while they use them, and
  // state. kNone: placed wherever it is used. Empty: all kNone.
  std::vector<std::uint32_t> homes = {};
  // A device where each tensor may do well, which the search also tries: for parts of split weights. kNone: unknown.
  // Empty: all kNone.
  std::vector<std::uint32_t> suggested = {};
};

// Use the caller's placement: the index of a device for each node.
struct GivenPlaces {
  std::vector<std::uint32_t> device_of_node;
  bool compare = false;  // also predict the planner's own choice, as Plan::best_us
};

// Run each node where another step already holds its weights: the index of a device for each node.
struct FollowWeights {
  std::vector<std::uint32_t> device_of_node;
};

using Where = std::variant<Search, GivenPlaces, FollowWeights>;

struct PlanRequest {
  const Graph* graph = nullptr;
  std::span<Device* const> devices;  // candidates
  // The cost of ops on each device; empty: the priors.
  std::span<const DeviceCost> costs = {};
  // Shared by plans for the same devices and costs; null: make_plan() makes its own.
  CostCache* cost_cache = nullptr;
  Where where = Search{};
  bool fuse = true;  // let devices run fused ops
  // The bytes that the memory (memory_of()) of each device may give to a plan. Devices that share a memory get the
  // least of theirs. Empty: no limit.
  std::vector<std::uint64_t> budget_bytes = {};
  // The device that each weight is copied from again after other plans used its memory, which is in the arena of the
  // device that reads it. kNone: no other plan uses its memory. Empty: all kNone.
  std::vector<std::uint32_t> lent_from = {};
  // The size of each device's arena, which other plans use as well; 0 or empty: as large as needed. A plan that
  // would be much slower within them than with larger ones is refused as out_of_memory.
  std::vector<std::uint64_t> arena_bytes = {};
  bool state_travels = false;  // devices may copy state that has a home elsewhere, and return what they change
  std::span<const Quarantined> quarantined = {};  // devices that may not be used for now; the plan lists them
};

// Returns `margin`, or its default if empty: 5 %, or 100 % while the rates of a device are priors.
[[nodiscard]] double margin_or_default(std::optional<double> margin, bool is_measured);

// Errors: unsupported if no device can run an op, with each device's reason, or if a strict preferred device cannot;
// out_of_memory if the budgets cannot be met; invalid for the wrong number of places, homes or budgets.
[[nodiscard]] Result<Plan> make_plan(const PlanRequest& request);

// Fills in Candidate::added_us by the search's evaluator, and corrects reasons that it contradicts. Takes as many
// evaluations as there are candidates. REQUIRES: `plan` was made for `request`.
void explain(const PlanRequest& request, Plan& plan);

// Returns the device of each node in a plan, for another graph with the same nodes.
[[nodiscard]] std::vector<std::uint32_t> devices_of_nodes(const Plan& plan, const Graph& graph);

// Returns where a plan holds weights and state, as Search::homes, for another graph with the same tensors.
[[nodiscard]] std::vector<std::uint32_t> homes_of(const Plan& plan, const Graph& graph);

}  // namespace shunt
