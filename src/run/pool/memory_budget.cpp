#include "run/pool/memory_budget.h"

#include <algorithm>

namespace shunt {
namespace {

constexpr double kShareOfFree = 0.95;
// Memory is short if so little of what should stay free is left.
constexpr double kShort = 0.1;
// The factor by which failed allocations reduce a budget.
constexpr double kLess = 0.75;
// The growth that is worth a look at another plan, and the one that ends a reduction.
constexpr double kNotable = 0.05;
// The part of what is held that is given up when memory stays short: 2^-N, then twice that.
constexpr unsigned kFirstPart = 4;

std::uint64_t share(std::uint64_t bytes, double of) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * of);
}

}  // namespace

std::uint64_t usable_of(std::uint64_t free_bytes) { return share(free_bytes, kShareOfFree); }

void MemoryBudget::look(std::uint64_t held_bytes, std::uint64_t free_bytes) {
  held_ = held_bytes;
  free_ = free_bytes;
  if (held_bytes != 0 && !is_short()) times_short_ = 0;  // what starts over holds nothing yet
  if (all() > share(all_when_reduced_, 1 + kNotable)) most_ = std::nullopt;
  bytes_ = std::min(usable_of(all()), most_.value_or(kNoBudget));
}

bool MemoryBudget::is_short() const {
  return follows_ && held_ != 0 && free_ < share(all() - usable_of(all()), kShort);
}

void MemoryBudget::give_up() {
  const std::uint64_t more = times_short_ == 0 ? 0 : held_ >> (kFirstPart - std::min(times_short_, kFirstPart));
  bytes_ -= std::min(bytes_, more);
  ++times_short_;
}

bool MemoryBudget::reduce(std::uint64_t planned) {
  if (follows_ && planned > all()) return true;  // the last look has reduced it
  if (planned != 0) bytes_ = std::min(bytes_, planned);
  bytes_ = share(bytes_, kLess);
  most_ = bytes_;
  all_when_reduced_ = all();
  return false;
}

void MemoryBudget::note_plan() {
  planned_with_ = bytes_;
  all_when_planned_ = all();
}

bool MemoryBudget::has_grown() const { return follows_ && bytes_ > share(planned_with_, 1 + kNotable); }

}  // namespace shunt
