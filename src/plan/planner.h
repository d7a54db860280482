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
  // The index of the device that runs what it can; kNone: that of least predicted time.
  std::uint32_t preferred = kNone;
  bool strict = false;  // what the preferred device cannot run is an error
  // By which part of its own time another choice must be faster than the device named first, and a mix of devices than
  // one; nothing: margin_or_default().
  std::optional<double> margin = {};
  // For each tensor the index of the device in whose memory it is already: weights, of which others may get a copy for
  // as long as they use it, and state. kNone: wherever it is used. Empty: all kNone.
  std::vector<std::uint32_t> homes = {};
  // For each tensor the index of a device where it may do well, which is tried beside others: parts of weights that
  // were split for these. kNone: nobody knows. Empty: all kNone.
  std::vector<std::uint32_t> suggested = {};
};

// Use the caller's placement: for each node the index of its device.
struct GivenPlaces {
  std::vector<std::uint32_t> device_of_node;
  bool compare = false;  // the plan also says what the planner's own choice would take
};

// Run each node where another step holds its weights: for each node the index of its device.
struct FollowWeights {
  std::vector<std::uint32_t> device_of_node;
};

using Where = std::variant<Search, GivenPlaces, FollowWeights>;

struct PlanRequest {
  const Graph* graph = nullptr;
  std::span<Device* const> devices;  // candidates
  // The cost of ops on each device; empty: the priors.
  std::span<const DeviceCost> costs = {};
  // Shared by plans for the same devices and costs; null: make_plan() has its own.
  CostCache* cost_cache = nullptr;
  Where where = Search{};
  bool fuse = true;  // let devices claim fused rows
  // For each device the bytes that its memory (memory_of()) may give to a plan, of several devices the least; empty: as
  // much as is asked for.
  std::vector<std::uint64_t> budget_bytes = {};
  std::span<const Quarantined> quarantined = {};  // devices that are no candidates for now; the plan lists them
};

// `margin`; if nobody says so 5 %, and 100 % while the rates of a device are priors.
[[nodiscard]] double margin_or_default(std::optional<double> margin, bool is_measured);

// Errors: unsupported where no device can run an op, with each device's reason, or where the preferred one cannot and
// nothing may run elsewhere; out_of_memory where budgets do not hold; invalid for places, homes or budgets of another
// number.
[[nodiscard]] Result<Plan> make_plan(const PlanRequest& request);

// Fills in Candidate::added_us by the search's evaluator, and corrects reasons that it contradicts. Takes as many
// evaluations as there are candidates. REQUIRES: `plan` is one of `request`.
void explain(const PlanRequest& request, Plan& plan);

// Where a plan has each node of its graph, for another graph of the same nodes.
[[nodiscard]] std::vector<std::uint32_t> devices_of_nodes(const Plan& plan, const Graph& graph);

// Where a plan holds the weights and the state of its graph, as Search::homes: for another graph of the same tensors.
[[nodiscard]] std::vector<std::uint32_t> homes_of(const Plan& plan, const Graph& graph);

}  // namespace shunt
