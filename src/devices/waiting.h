// Waiting in advance() for devices without a thread of their own: for a slice of time, and no longer than a submission
// may take, by the machine's clock. Plain functions; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "devices/device.h"

namespace shunt {

// The time at which a submission times out; nullopt: never.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// Returns the deadline of a submission made now.
[[nodiscard]] inline Deadline deadline_of(const Submission& submission) {
  using Time = std::chrono::steady_clock::time_point;
  if (!submission.timeout) return std::nullopt;
  const Time now = std::chrono::steady_clock::now();
  return *submission.timeout > Time::max() - now ? Time::max() : now + *submission.timeout;
}

[[nodiscard]] inline bool has_passed(const Deadline& deadline) {
  return deadline && std::chrono::steady_clock::now() >= *deadline;
}

// Returns `patience`, or the time left until the deadline if that is less.
[[nodiscard]] inline std::chrono::nanoseconds patience_until(const Deadline& deadline,
                                                             std::chrono::nanoseconds patience = kPatience) {
  if (!deadline) return patience;
  const std::chrono::nanoseconds left = *deadline - std::chrono::steady_clock::now();
  return std::clamp(left, std::chrono::nanoseconds(0), patience);
}

// Polls `is_over`, for APIs that can be polled but not waited for, until it returns true or patience ends: at first
// continuously, then with naps in between, once they are short beside the wait.
template <class IsOver>
void poll_patiently(std::chrono::nanoseconds patience, const IsOver& is_over) {
  constexpr std::chrono::milliseconds kEagerness{5};
  constexpr std::chrono::microseconds kNap{50};
  const auto begin = std::chrono::steady_clock::now();
  while (!is_over()) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > patience) return;
    if (waited > kEagerness)
      std::this_thread::sleep_for(kNap);
    else
      std::this_thread::yield();
  }
}

}  // namespace shunt
