// A recording's plans, seen after they ran: what each op took beside what was predicted, and what its decision lost.
//
// Regret is what another device is predicted to have saved: by how much the op took longer than predicted, less what
// the whole was predicted to take longer on the best of all other devices that would have been used for it: that were
// measured and, of the scalar reference, that the user named. Ops of one group move together, so the largest regret
// among them counts for the group. Of a plan it is the sum or, where it was placed by hand, what the planner's own
// choice was predicted to save, if that is more. Never below zero. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/record.h"
#include "shunt/status.h"
#include "shunt/trace.h"

namespace shunt {

// Of all that ended well.
struct Actual {
  std::uint64_t times = 0;
  double mean_us = 0;
  double least_us = 0;
  double most_us = 0;

  void add(double us);
};

struct DecisionRegret {
  DecisionRecord decision;
  Actual actual;           // no times where ops were not timed one by one
  double regret_us = 0;    // each time, on the mean
  std::string best_other;  // whose prediction that is against; empty where no other could run it

  // What the op itself was predicted to take.
  [[nodiscard]] double predicted_us() const;
};

struct PlanRegret {
  std::uint32_t number = 0;  // what events call it
  PlanRecord plan;
  Actual actual;  // of whole runs; of those that were slowed down, having no prediction, only where there are no others
  std::vector<DecisionRegret> decisions;

  [[nodiscard]] double regret_us() const;  // per run
  // What the planner's own choice was predicted to save, per run, of a plan that was placed by hand.
  [[nodiscard]] double regret_of_hand_us() const;
  // "a step of 16 tokens", or which inputs it takes.
  [[nodiscard]] std::string title() const;
};

// All plans that are attached, in their order. `named`: the devices that the user listed, with commas between. Errors:
// invalid where one is not what to_json(plan) writes.
[[nodiscard]] Result<std::vector<PlanRegret>> regrets_of(const trace::Recording& recording,
                                                         std::string_view named = {});

// For people: each decision with all candidates, what it took and what was lost.
[[nodiscard]] std::string to_text(const PlanRegret& plan);
// As the plan has it, with what it took and what was lost beside each decision.
[[nodiscard]] std::string to_json(const PlanRegret& plan);

}  // namespace shunt
