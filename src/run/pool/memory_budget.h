// How many bytes of a device's memory plans may use: what the user said, or nearly all that is free or held already.
//
// Memory is held by the owner of a device pool, with what it shares with others, or by others: programs, and the rest
// of this one. A plain value; one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "shunt/devices.h"

namespace shunt {

// Returns the usable share of free memory; drivers keep some for programs and themselves.
[[nodiscard]] std::uint64_t usable_of(std::uint64_t free_bytes);

class MemoryBudget {
 public:
  // kNoBudget: no limit. `follows`: that many bytes now, and then as many as looks show.
  MemoryBudget(std::uint64_t bytes, bool follows) : bytes_(bytes), follows_(follows && bytes != kNoBudget) {}

  [[nodiscard]] bool follows() const { return follows_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // Adapts to what is held and free now. REQUIRES: follows().
  void look(std::uint64_t held_bytes, std::uint64_t free_bytes);
  // Returns whether so little is free that some of what is held should be given up.
  [[nodiscard]] bool is_short() const;
  // Has the next plan hold less: only a little at first, and twice as much each time while memory stays short, for
  // others may take whatever becomes free. REQUIRES: is_short().
  void give_up();
  // Reduces it after an allocation failed for a plan that takes `planned` bytes (0: unknown). The reduction ends once
  // others have given memory back. Returns whether others have left too little for the plan.
  bool reduce(std::uint64_t planned);

  // Notes that plans are made with it now.
  void note_plan();
  // Returns the bytes that others have taken or given back since.
  [[nodiscard]] std::uint64_t taken() const { return all_when_planned_ - std::min(all_when_planned_, all()); }
  [[nodiscard]] std::uint64_t given_back() const { return all() - std::min(all(), all_when_planned_); }
  // Returns whether plans could use notably more than those that were made.
  [[nodiscard]] bool has_grown() const;
  // Returns the bytes that no others have.
  [[nodiscard]] std::uint64_t all() const { return held_ + free_; }

 private:
  std::uint64_t bytes_;
  bool follows_;
  std::uint64_t held_ = 0;
  std::uint64_t free_ = 0;
  unsigned times_short_ = 0;  // in a row
  std::uint64_t planned_with_ = 0;
  std::uint64_t all_when_planned_ = 0;
  // The most that may be used after an allocation failed, and what others had left then.
  std::optional<std::uint64_t> most_;
  std::uint64_t all_when_reduced_ = 0;
};

}  // namespace shunt
