// The queue of submissions of a device whose submissions end in order and are polled one by one: OpenGL and WebGL2.
//
// A Program must have name() and was_cut_short(): whether its last submission stopped at the deadline before its last
// op. Owned by the device; one thread.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <string>
#include <utility>

#include "devices/health.h"
#include "devices/waiting.h"

namespace shunt {

template <class Program>
class Submissions {
 public:
  // Both must outlive this.
  Submissions(Device& device, HealthRecord& health) : device_(device), health_(health) {}

  [[nodiscard]] bool empty() const { return pending_.empty(); }

  // Implements Device::submit(). `start(deadline)` starts the program.
  template <class Start>
  Event submit(Program& program, const Submission& submission, const Start& start) {
    if (Status lost = health_.get().status; !lost) return Event(std::move(lost));
    // Nothing was started, so the device is unharmed.
    const Deadline deadline = deadline_of(submission);
    if (has_passed(deadline)) return Event(late(program, "its deadline had passed before it was submitted"));
    Status started = health_.attempt(name_of(program), [&] { return start(deadline); });
    if (!started) return Event(std::move(started));
    Event event(&device_);
    pending_.push_back({&program, event, deadline});
    return event;
  }

  // Completes the oldest submission if it has ended, as `has_ended(program, deadline)` reports, or if it is late.
  // Returns true if it did, or if none is left.
  template <class HasEnded>
  bool complete_first(const HasEnded& has_ended) {
    if (pending_.empty()) return true;
    Status alive = health_.get().status;
    Pending first = pending_.front();
    if (alive) {
      Result<bool> ended = has_ended(*first.program, first.deadline);
      if (ended && !*ended && !has_passed(first.deadline)) return false;
      pending_.pop_front();
      const Status outcome = outcome_of(*first.program, std::move(ended));
      alive = health_.get().status;
      first.event.complete(outcome);
    }
    // A lost device fails all that is pending.
    std::deque<Pending> rest;
    if (!alive) rest.swap(pending_);
    for (Pending& each : rest) each.event.complete(alive);
    return true;
  }

 private:
  struct Pending {
    Program* program;
    Event event;
    Deadline deadline;
  };

  static std::string name_of(const Program& program) { return fmt::format("program \"{}\"", program.name()); }
  [[nodiscard]] Status late(const Program& program, std::string why) const {
    return health_.at(name_of(program), {Code::timed_out, std::move(why)});
  }

  // `ended`: whether it ended by its deadline.
  Status outcome_of(const Program& program, Result<bool> ended) {
    if (!ended) return health_.note(health_.at(name_of(program), std::move(ended).error()));
    if (!*ended) return health_.note(late(program, "it still ran at its deadline"));
    if (program.was_cut_short()) return late(program, "its deadline came between its ops");
    return {};
  }

  Device& device_;
  HealthRecord& health_;
  std::deque<Pending> pending_;
};

}  // namespace shunt
