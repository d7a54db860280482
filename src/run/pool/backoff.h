// Records that something failed, and how long to leave it alone: twice as many calls after each failure. A plain value;
// one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "shunt/status.h"

namespace shunt {

class Backoff {
 public:
  // Calls that avoid it after the first failure.
  static constexpr std::uint64_t kCalls = 64;

  // Records a failure in call number `call`.
  void add(Error why, std::uint64_t call) {
    why_ = std::move(why);
    until_ = call + (kCalls << failures_);
    failures_ = std::min(failures_ + 1, 20U);
  }
  // Forgets all failures.
  void end() { *this = Backoff(); }

  [[nodiscard]] bool holds(std::uint64_t call) const { return call <= until_; }
  // Returns whether it has worked since for as long as it was left alone.
  [[nodiscard]] bool is_over(std::uint64_t call) const {
    return failures_ != 0 && call > until_ + (kCalls << (failures_ - 1));
  }
  [[nodiscard]] const Error& why() const { return why_; }

 private:
  Error why_;
  std::uint64_t until_ = 0;
  unsigned failures_ = 0;
};

}  // namespace shunt
