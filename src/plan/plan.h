// A Plan: which op on which device, in what order, with which transfers and where every tensor lies, and why.
//
// A plain value. It can be printed, compared and checked on its own; equal inputs give equal plans.
// Devices are indices into `devices`, tensors and nodes are ids of the graph it was made for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/fusion.h"
#include "shunt/graph.h"

namespace shunt {

// Why a device was, or was not, given an op.
enum class Reason : std::uint8_t {
  only_candidate,     // no other device could
  lower_cost,         // with any other the whole would take longer
  others_are_full,    // others could, and have no room
  kept,               // another would make the whole faster, by less than the margin
  placed_by_hand,     // the caller said so
  preferred,          // the caller prefers the device
  preferred_is_full,  // weights or state of the op have no room on the device that the caller prefers
  where_weights_are,  // another step holds its weights there
  higher_cost,        // rejected: with this one the whole would take longer
  within_margin,      // rejected: with this one, or it and others, the whole would be faster, by less than the margin
  not_tried,          // rejected: with this one the whole would be faster, which the search did not see
  not_preferred,      // rejected: the caller prefers another device
  weights_elsewhere,  // rejected: another step holds its weights on another device
  group_cannot,       // rejected: ops that must run beside it cannot run there
  lacks_op,           // rejected: what it lacks stands beside
  too_large,          // rejected: an operand is larger than it can bind
  no_memory,          // rejected: what the op needs has no room there; how much stands beside
  state_elsewhere,    // rejected: state the op changes lives in another memory
  not_named,          // rejected: the caller named another device
  quarantined,        // rejected: it failed before; how stands beside
};
[[nodiscard]] std::string_view name_of(Reason reason);

struct Candidate {
  std::uint32_t device = 0;
  Reason reason = Reason::lacks_op;
  std::string detail;     // what it lacks, which operand is too large, or how much memory there is
  double compute_us = 0;  // of the op alone; 0 where it cannot run
  double uncertainty_us = 0;
  bool measured = false;  // the prediction rests on measurements of the device, not on priors
  // Time added to the whole plan if this op and its group ran here and all else stayed; 0 for the chosen device.
  // Nothing before explain(), and where that is not possible.
  std::optional<double> added_us;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// A device that failed and may not be used for now.
struct Quarantined {
  std::string id;
  std::string why;
  friend bool operator==(const Quarantined&, const Quarantined&) = default;
};

struct Decision {
  std::uint32_t device = 0;
  Reason reason = Reason::only_candidate;
  std::uint32_t group = 0;            // ops of one group run on one device; 0 before explain()
  std::vector<Candidate> candidates;  // one per device, the chosen one included
  friend bool operator==(const Decision&, const Decision&) = default;
};

enum class StorageKind : std::uint8_t { value, input, weight, state };
[[nodiscard]] std::string_view name_of(StorageKind kind);

// A copy of a tensor in the memory of one device.
struct Residence {
  TensorId tensor = kNone;  // a base tensor, never a view
  std::uint32_t device = 0;
  StorageKind kind = StorageKind::value;
  std::uint64_t offset = 0;  // in the device's arena; values and inputs only
  std::uint64_t bytes = 0;
  // First writer and last reader, as positions in `units`; inputs and outputs of the graph are used after the last one.
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const Residence&, const Residence&) = default;
};

struct Transfer {
  TensorId tensor = kNone;
  std::uint32_t from = 0;  // devices
  std::uint32_t to = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct Step {
  enum class Kind : std::uint8_t { compute, transfer } kind = Kind::compute;
  std::uint32_t device = 0;      // compute: where
  std::uint32_t first_unit = 0;  // compute: a run of `units`
  std::uint32_t unit_count = 0;
  Transfer transfer;
  std::vector<std::uint32_t> after;  // steps that must have ended
  double start_us = 0;               // predicted
  double end_us = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

// What the plan takes of one memory pool.
struct MemoryUse {
  std::string pool;
  std::uint64_t weight_bytes = 0;
  std::uint64_t state_bytes = 0;
  std::uint64_t value_bytes = 0;  // arenas, inputs included
  std::uint64_t scratch_bytes = 0;
  [[nodiscard]] std::uint64_t total() const { return weight_bytes + state_bytes + value_bytes + scratch_bytes; }
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

struct Plan {
  struct PlannedDevice {
    std::string id;
    std::string pool;
    std::string resource;
    std::uint64_t alignment_bytes = 1;  // of what lies in its arena
    std::uint64_t arena_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    double correction = 1;  // of what it was predicted to take
    friend bool operator==(const PlannedDevice&, const PlannedDevice&) = default;
  };
  std::vector<PlannedDevice> devices;
  std::vector<Quarantined> quarantined;  // devices that are no candidates for now
  std::vector<Unit> units;
  std::vector<Decision> decisions;  // one per unit
  std::vector<Residence> residences;
  std::vector<Step> steps;
  std::vector<MemoryUse> memory;
  double predicted_us = 0;
  // The part of predicted_us that steps wait for memory still in use, which the search does not count. Now and then
  // below zero, because links then carry copies in another order.
  double memory_wait_us = 0;
  double best_us = 0;        // what the planner's own choice is predicted to take, where this one was made by hand
  double bound_us = 0;       // what no placement of these units beats, were copies free; 0: not known
  bool is_measured = false;  // all of its devices were measured
  friend bool operator==(const Plan&, const Plan&) = default;

  // The copy of `tensor` (a base) that `device` can address, or null.
  [[nodiscard]] const Residence* find(TensorId tensor, std::uint32_t device) const;
};

// Whether the plan computes the graph. Trusts nothing in it: every index is in range; every node is computed, and made
// once; what a unit reads was written, and its state is of the version that the graph says, by a step that has ended;
// every copy has the tensor's bytes, aligned and inside its arena; memory is taken over only when its readers have
// ended. Errors: internal.
[[nodiscard]] Status check(const Plan& plan, const Graph& graph);

// For people: devices, memory, steps and, if asked, each decision with its candidates.
[[nodiscard]] std::string to_text(const Plan& plan, const Graph& graph, bool explain);
[[nodiscard]] std::string to_json(const Plan& plan, const Graph& graph);

}  // namespace shunt
