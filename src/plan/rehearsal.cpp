#include "plan/rehearsal.h"

#include <set>
#include <tuple>

namespace shunt {
namespace {

class Rehearsal {
 public:
  Rehearsal(Plan& plan, std::span<const Lane> lanes)
      : plan_(plan),
        lanes_(lanes),
        timeline_(lanes),
        waiting_for_(plan.steps.size()),
        waiters_(plan.steps.size()),
        at_host_(plan.steps.size(), false) {}

  double run() {
    const auto count = static_cast<std::uint32_t>(plan_.steps.size());
    for (std::uint32_t number = 0; number < count; ++number) {
      waiting_for_[number] = plan_.steps[number].after.size();
      for (const std::uint32_t other : plan_.steps[number].after) waiters_[other].push_back(number);
    }
    for (std::uint32_t number = 0; number < count; ++number)
      if (waiting_for_[number] == 0) begin(number, 0);
    while (!going_.empty()) {
      const auto [now, turn, number] = going_.extract(going_.begin()).value();
      end(number, now);
    }
    return timeline_.end_us();
  }

 private:
  void begin(std::uint32_t number, double now) {
    Step& step = plan_.steps[number];
    if (step.kind == Step::Kind::transfer) return begin_copy(number, now);
    double us = 0;
    for (std::uint32_t i = 0; i < step.unit_count; ++i) {
      const Decision& decision = plan_.decisions[step.first_unit + i];
      us += decision.candidates[decision.device].compute_us;
    }
    const Span span = timeline_.compute(step.device, now, us);
    step.start_us = span.start_us;
    keep_going(number, span.end_us);
  }

  void begin_copy(std::uint32_t number, double now) {
    Step& step = plan_.steps[number];
    const Transfer& transfer = step.transfer;
    at_host_[number] = goes_through_host(lanes_[transfer.from], lanes_[transfer.to]);
    const Span span = at_host_[number] ? timeline_.to_host(transfer.from, transfer.bytes, now)
                                       : timeline_.from_host(transfer.to, transfer.bytes, now);
    step.start_us = span.start_us;
    keep_going(number, span.end_us);
  }

  void keep_going(std::uint32_t number, double until_us) {
    plan_.steps[number].end_us = until_us;
    going_.emplace(until_us, turn_++, number);
  }

  void end(std::uint32_t number, double now) {
    const Transfer& transfer = plan_.steps[number].transfer;
    if (at_host_[number]) {
      at_host_[number] = false;
      return keep_going(number, timeline_.from_host(transfer.to, transfer.bytes, now).end_us);
    }
    for (const std::uint32_t waiter : waiters_[number])
      if (--waiting_for_[waiter] == 0) begin(waiter, now);
  }

  Plan& plan_;
  std::span<const Lane> lanes_;
  Timeline timeline_;
  std::vector<std::size_t> waiting_for_;
  std::vector<std::vector<std::uint32_t>> waiters_;
  std::vector<bool> at_host_;                                         // copies that are half way
  std::set<std::tuple<double, std::uint64_t, std::uint32_t>> going_;  // until when, since which turn, which step
  std::uint64_t turn_ = 0;
};

}  // namespace

double rehearse(Plan& plan, std::span<const Lane> lanes) { return Rehearsal(plan, lanes).run(); }

}  // namespace shunt
