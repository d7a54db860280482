// A Plan: which op runs on which device, in what order, with which transfers, where every tensor is stored, and why.
//
// A plain value. It can be printed, compared and checked on its own; equal inputs give equal plans. Devices are indices
// into `devices`; tensors and nodes are ids of the graph it was made for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/fusion.h"
#include "ops/arithmetic.h"
#include "shunt/graph.h"

namespace shunt {

// Why a device was, or was not, given an op.
enum class Reason : std::uint8_t {
  only_candidate,     // no other device can run it
  lower_cost,         // any other device would make the whole slower
  others_are_full,    // others can run it, but have no room
  kept,               // another would make the whole faster, but by less than the margin
  placed_by_hand,     // the caller chose the device
  preferred,          // the caller prefers the device
  preferred_is_full,  // weights or state of the op do not fit on the device that the caller prefers
  where_weights_are,  // its weights are already on this device, for another step
  higher_cost,        // rejected: it would make the whole slower
  within_margin,      // rejected: it, alone or with others, would make the whole faster, but by less than the margin
  not_tried,          // rejected: it would make the whole faster, but the search did not see that
  not_preferred,      // rejected: the caller prefers another device
  weights_elsewhere,  // rejected: its weights are on another device, for another step
  group_cannot,       // rejected: ops of its group cannot run there
  lacks_op,           // rejected: the detail says what it lacks
  too_large,          // rejected: an operand is larger than it can bind
  no_memory,          // rejected: what the op needs does not fit there; the detail says how much
  state_elsewhere,    // rejected: the op changes state that is in another memory
  not_named,          // rejected: the caller named another device
  quarantined,        // rejected: it failed before; the detail says how
};
[[nodiscard]] std::string_view name_of(Reason reason);

struct Candidate {
  std::uint32_t device = 0;
  Reason reason = Reason::lacks_op;
  std::string detail;     // what it lacks, which operand is too large, or how much memory there is
  double compute_us = 0;  // of the op alone; 0: it cannot run
  double uncertainty_us = 0;
  bool measured = false;                    // the prediction rests on measurements of alike ops on the device
  Arithmetic arithmetic = Arithmetic::f32;  // of its products here
  std::string kernel;                       // that runs it here, if the device has several for it
  bool kernel_measured = false;             // it was measured to be the fastest; otherwise the device's rule took it
  // Time added to the whole plan if this op and its group ran here and all else stayed; 0 for the chosen device. Empty
  // before explain(), and if the move is impossible.
  std::optional<double> added_us;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// A device that failed and may not be used for now.
struct Quarantined {
  std::string id;
  std::string why;
  friend bool operator==(const Quarantined&, const Quarantined&) = default;
};

// Another API of a GPU, which was not chosen for the work that a plan is part of.
struct OtherApi {
  std::string used;   // ids of the devices in use, through the chosen API
  std::string other;  // ids of the same GPUs through this one
  std::string work;   // what was compared: "a run"
  double used_us = 0;
  double other_us = 0;  // 0: it cannot do the work
  std::string why;      // why it cannot
  friend bool operator==(const OtherApi&, const OtherApi&) = default;
};
// "cuda:0 rather than vulkan:0: predicted 1.8 ms instead of 9.1 ms for a run"
[[nodiscard]] std::string to_text(const OtherApi& api);

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
  // From when until when it is in use, as positions in `units`: at least from its first writer to its last reader.
  // Inputs and outputs of the graph are in use past the last unit.
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const Residence&, const Residence&) = default;
};

// The kind of a transfer: of a value, or of a weight or state whose home is elsewhere, for the duration of a step. What
// a step changes of such state is copied home again.
enum class Copied : std::uint8_t { value, weight, state };

struct Transfer {
  TensorId tensor = kNone;
  std::uint32_t from = 0;  // devices
  std::uint32_t to = 0;
  std::uint64_t bytes = 0;
  std::uint64_t expected_bytes = 0;  // at most `bytes`; of state, only what is in use travels
  Copied copied = Copied::value;
  bool stays = false;  // of a weight: the next run finds it there, unless others used the arena meanwhile
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct Step {
  enum class Kind : std::uint8_t { compute, transfer } kind = Kind::compute;
  std::uint32_t device = 0;      // compute: where
  std::uint32_t first_unit = 0;  // compute: a run of `units`
  std::uint32_t unit_count = 0;
  Transfer transfer;
  std::vector<std::uint32_t> after;  // steps that must end first
  double start_us = 0;               // predicted
  double end_us = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

// The memory that the plan uses in one pool.
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
    std::uint64_t alignment_bytes = 1;  // of tensors in its arena
    std::uint64_t arena_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint64_t shared_scratch_bytes = 0;  // of these, what its programs share
    double correction = 1;                   // factor on its predicted times
    friend bool operator==(const PlannedDevice&, const PlannedDevice&) = default;
  };
  std::vector<PlannedDevice> devices;
  std::vector<Quarantined> quarantined;  // devices that may not be used for now
  std::vector<OtherApi> other_apis;      // of its GPUs
  std::vector<Unit> units;
  std::vector<Decision> decisions;  // one per unit
  std::vector<Residence> residences;
  std::vector<Step> steps;
  std::vector<MemoryUse> memory;
  double predicted_us = 0;
  // The part of predicted_us that steps wait for memory still in use, which the search does not count. Sometimes
  // negative, because links then carry copies in another order.
  double memory_wait_us = 0;
  double best_us = 0;        // predicted time of the planner's own choice, if this one was made by hand
  double bound_us = 0;       // lower bound on any placement of these units, if copies were free; 0: unknown
  bool is_measured = false;  // all its devices were measured, or others that use the same processors and memory
  friend bool operator==(const Plan&, const Plan&) = default;

  // The copy of `tensor` (a base) that `device` can address, or null.
  [[nodiscard]] const Residence* find(TensorId tensor, std::uint32_t device) const;
};

// Checks that the plan computes the graph, trusting nothing in it. Every index is in range. Every node is computed, and
// made once. Every unit reads values that were written, and state of the version that the graph says, by steps that
// have ended. Versions are those of each copy, and the last one is at the state's home in the end. Every copy has the
// tensor's bytes, aligned and inside its arena. Memory is reused only when its readers have ended. Errors: internal.
[[nodiscard]] Status check(const Plan& plan, const Graph& graph);

// Returns what the predicted time does not rest on, and the remedy, in parentheses; nothing if all was measured.
[[nodiscard]] std::string doubt_in_words(const Plan& plan, const Graph& graph);
// Describes devices, memory, steps and, if asked, each decision with its candidates.
[[nodiscard]] std::string to_text(const Plan& plan, const Graph& graph, bool explain);
[[nodiscard]] std::string to_json(const Plan& plan, const Graph& graph);

}  // namespace shunt
