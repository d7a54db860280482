// Reviews a recording's plans after they ran: what each op took against its prediction, and the regret of its decision.
//
// Regret is the time that another device was predicted to save. It is the op's time beyond its prediction, less the
// time that the best other device was predicted to add to the whole. Only devices that would have been used count:
// measured ones, and the scalar reference if the user named it. Ops of one group move together, so that the largest
// regret among them counts for the group. A plan's regret is the sum. If it was placed by hand, it is what the
// planner's own choice was predicted to save, if that is more. Regret is never negative. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/record.h"
#include "shunt/status.h"
#include "shunt/trace.h"

namespace shunt {

// Times of all runs that succeeded.
struct Actual {
  std::uint64_t times = 0;
  double mean_us = 0;
  double least_us = 0;
  double most_us = 0;

  void add(double us);
};

struct DecisionRegret {
  DecisionRecord decision;
  Actual actual;           // empty if ops were not timed one by one
  double regret_us = 0;    // per run, on average
  std::string best_other;  // the device it is measured against; empty: no other could run it

  // The predicted time of the op itself.
  [[nodiscard]] double predicted_us() const;
};

struct PlanRegret {
  std::uint32_t number = 0;  // as events call it
  PlanRecord plan;
  // Times of whole runs. Runs that were slowed down have no prediction, and count only if there are no others.
  Actual actual;
  std::vector<DecisionRegret> decisions;

  [[nodiscard]] double regret_us() const;  // per run
  // The time per run that the planner's own choice was predicted to save, for a plan placed by hand.
  [[nodiscard]] double regret_of_hand_us() const;
  // "a step of 16 tokens", or the inputs it takes.
  [[nodiscard]] std::string title() const;
};

// Returns all attached plans, in order. `named`: the devices that the user listed, separated by commas. Errors: invalid
// if a plan is not what to_json(plan) writes.
[[nodiscard]] Result<std::vector<PlanRegret>> regrets_of(const trace::Recording& recording,
                                                         std::string_view named = {});

// Describes each decision with all its candidates, its actual time and its regret.
[[nodiscard]] std::string to_text(const PlanRegret& plan);
// Writes the plan's JSON, with the actual time and the regret of each decision.
[[nodiscard]] std::string to_json(const PlanRegret& plan);

}  // namespace shunt
