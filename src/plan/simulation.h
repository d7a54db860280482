// Simulates when steps begin and end if all predictions are right. Processors and links do one thing at a time, and a
// step begins when the last step that it waits for has ended, as in the executor. The planner's search and the plan
// itself use the same simulation. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "plan/timeline.h"

namespace shunt {

class Simulation {
 public:
  // `lanes` must outlive it.
  explicit Simulation(std::span<const Lane> lanes) : timeline_(lanes), lanes_(lanes) {}

  // Forgets all steps.
  void clear();
  // Adds a step and returns its number: ops on a device, or a copy between two devices, which takes no time if they are
  // one. It waits for nothing yet.
  std::uint32_t add_ops(std::uint32_t device);
  std::uint32_t add_copy(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, Copied what);
  // Adds to the time of a step of ops.
  void take(std::uint32_t number, double us) { steps_[number].us += us; }
  // Makes a step also wait for `other`.
  void wait_for(std::uint32_t number, std::uint32_t other);
  [[nodiscard]] bool waits_for(std::uint32_t number, std::uint32_t other) const;

  // Returns when the last step ends.
  double run();
  // After run().
  [[nodiscard]] Span span_of(std::uint32_t number) const { return steps_[number].span; }

 private:
  struct TimedStep {
    std::uint32_t device = 0;
    std::uint32_t from = kNone;  // of a copy
    std::uint64_t bytes = 0;
    Copied copied = Copied::value;
    double us = 0;                // of ops
    std::uint32_t waits = kNone;  // its last wait in waits_
    std::uint32_t wait_count = 0;
    std::uint32_t going_on = 0;      // unfinished steps that it waits for
    std::uint32_t first_waiter = 0;  // in waiters_; those of the next step follow
    bool at_host = false;            // a copy that is half way
    Span span;
  };
  struct Wait {
    std::uint32_t step;
    std::uint32_t before;  // the step's previous wait, or kNone
  };
  struct Going {
    double until_us;
    std::uint32_t turn;
    std::uint32_t number;
    [[nodiscard]] bool operator>(const Going& other) const {
      return until_us != other.until_us ? until_us > other.until_us : turn > other.turn;
    }
  };
  void find_waiters();
  void begin(std::uint32_t number, double now);
  void end(std::uint32_t number, double now);
  void keep_going(std::uint32_t number, double until_us);

  Timeline timeline_;
  std::span<const Lane> lanes_;
  std::vector<TimedStep> steps_;
  std::vector<Wait> waits_;
  std::vector<std::uint32_t> waiters_;
  std::vector<Going> going_;  // a heap; the first to end is on top
  std::uint32_t turn_ = 0;
};

// Sets start_us and end_us of every step and returns when the last one ends. REQUIRES: one lane per device of the plan.
double simulate(Plan& plan, std::span<const Lane> lanes);

}  // namespace shunt
