#include "plan/simulation.h"

#include <algorithm>
#include <functional>

namespace shunt {

void Simulation::clear() {
  steps_.clear();
  waits_.clear();
}

std::uint32_t Simulation::add_ops(std::uint32_t device) {
  steps_.push_back({.device = device});
  return static_cast<std::uint32_t>(steps_.size() - 1);
}

std::uint32_t Simulation::add_copy(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, Copied what) {
  steps_.push_back({.device = to, .from = from, .bytes = bytes, .copied = priced_as(lanes_[from], lanes_[to], what)});
  return static_cast<std::uint32_t>(steps_.size() - 1);
}

bool Simulation::waits_for(std::uint32_t number, std::uint32_t other) const {
  for (std::uint32_t wait = steps_[number].waits; wait != kNone; wait = waits_[wait].before)
    if (waits_[wait].step == other) return true;
  return false;
}

void Simulation::wait_for(std::uint32_t number, std::uint32_t other) {
  if (waits_for(number, other)) return;
  TimedStep& step = steps_[number];
  waits_.push_back({.step = other, .before = step.waits});
  step.waits = static_cast<std::uint32_t>(waits_.size() - 1);
  ++step.wait_count;
}

// Groups the waiters of each step together, in order.
void Simulation::find_waiters() {
  for (TimedStep& step : steps_) step.first_waiter = 0;
  for (const Wait& wait : waits_) ++steps_[wait.step].first_waiter;
  std::uint32_t end = 0;
  for (TimedStep& step : steps_) step.first_waiter = end += step.first_waiter;
  waiters_.resize(waits_.size());
  for (auto number = static_cast<std::uint32_t>(steps_.size()); number-- > 0;)
    for (std::uint32_t wait = steps_[number].waits; wait != kNone; wait = waits_[wait].before)
      waiters_[--steps_[waits_[wait].step].first_waiter] = number;
}

double Simulation::run() {
  timeline_.reset();
  turn_ = 0;
  find_waiters();
  for (TimedStep& step : steps_) step.going_on = step.wait_count;
  for (std::uint32_t number = 0; number < steps_.size(); ++number)
    if (steps_[number].wait_count == 0) begin(number, 0);
  while (!going_.empty()) {
    std::ranges::pop_heap(going_, std::greater());
    const Going first = going_.back();
    going_.pop_back();
    end(first.number, first.until_us);
  }
  return timeline_.end_us();
}

void Simulation::begin(std::uint32_t number, double now) {
  TimedStep& step = steps_[number];
  if (step.from == kNone) {
    step.span = timeline_.compute(step.device, now, step.us);
  } else if (step.from == step.device) {
    step.span = {now, now};
  } else {
    step.at_host = goes_through_host(lanes_[step.from], lanes_[step.device]);
    step.span = step.at_host ? timeline_.to_host(step.from, step.bytes, now, step.copied)
                             : timeline_.from_peer(step.device, step.bytes, now);
  }
  keep_going(number, step.span.end_us);
}

void Simulation::keep_going(std::uint32_t number, double until_us) {
  steps_[number].span.end_us = until_us;
  going_.push_back({until_us, turn_++, number});
  std::ranges::push_heap(going_, std::greater());
}

void Simulation::end(std::uint32_t number, double now) {
  TimedStep& step = steps_[number];
  if (step.at_host) {
    step.at_host = false;
    const Span up = timeline_.from_host(step.device, step.bytes, now, step.copied);
    if (step.span.start_us == now) step.span.start_us = up.start_us;  // it was there already
    return keep_going(number, up.end_us);
  }
  const std::size_t last = number + 1 < steps_.size() ? steps_[number + 1].first_waiter : waiters_.size();
  for (std::size_t waiter = step.first_waiter; waiter < last; ++waiter)
    if (--steps_[waiters_[waiter]].going_on == 0) begin(waiters_[waiter], now);
}

double simulate(Plan& plan, std::span<const Lane> lanes) {
  Simulation simulation(lanes);
  for (const Step& step : plan.steps) {
    const Transfer& transfer = step.transfer;
    // What stays is there already.
    const std::uint32_t number = step.kind == Step::Kind::transfer
                                     ? simulation.add_copy(transfer.stays ? transfer.to : transfer.from, transfer.to,
                                                           transfer.expected_bytes, transfer.copied)
                                     : simulation.add_ops(step.device);
    for (std::uint32_t i = 0; i < step.unit_count; ++i) {
      const Decision& decision = plan.decisions[step.first_unit + i];
      simulation.take(number, decision.candidates[decision.device].compute_us);
    }
    for (const std::uint32_t earlier : step.after) simulation.wait_for(number, earlier);
  }
  const double end_us = simulation.run();
  for (std::uint32_t number = 0; number < plan.steps.size(); ++number) {
    plan.steps[number].start_us = simulation.span_of(number).start_us;
    plan.steps[number].end_us = simulation.span_of(number).end_us;
  }
  return end_us;
}

}  // namespace shunt
