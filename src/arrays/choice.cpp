#include "arrays/choice.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace shunt::arrays {

Timing::Timing() { last_us_.fill(std::numeric_limits<double>::infinity()); }

void Timing::add(double us, std::uint64_t call) {
  last_us_[next_] = us;
  next_ = (next_ + 1) % last_us_.size();
  count_ = std::min(count_ + 1, last_us_.size());
  last_call_ = call;
}

double Timing::median_us() const {
  auto sorted = last_us_;
  std::ranges::sort(sorted);
  return sorted[(count_ - 1) / 2];
}

double Choices::expected_us(const Calls& calls, const Contender& candidate) {
  const auto timing = calls.timings.find(candidate.device);
  return timing == calls.timings.end() ? candidate.predicted_us : timing->second.median_us();
}

const Contender& Choices::fastest(const Calls& calls, std::span<const Contender> candidates) {
  return *std::ranges::min_element(candidates, {}, [&](const Contender& each) { return expected_us(calls, each); });
}

double Choices::margin_between(const Calls& calls, const Contender& a, const Contender& b) const {
  const bool measured = calls.timings.contains(a.device) && calls.timings.contains(b.device);
  return measured ? margin_ : std::max(margin_, kUnmeasuredMargin);
}

const Contender* Choices::to_explore(const Calls& calls, std::span<const Contender> candidates, const Contender& best,
                                     double limit_us) const {
  if (!calls.timings.contains(best.device)) return nullptr;
  for (const Contender& each : candidates) {
    const auto timing = calls.timings.find(each.device);
    const bool is_known = timing != calls.timings.end() && timing->second.count() >= Timing::kEnough &&
                          calls.count - timing->second.last_call() < kOldCalls;
    if (each.device == best.device || is_known) continue;
    const double us = expected_us(calls, each);
    // A bad measurement alone does not rule out a device that was predicted to be good.
    const double at_best_us = std::min(us, each.predicted_us);
    if (us > limit_us || at_best_us > kHopeless * expected_us(calls, best)) continue;
    if (explored_us_ + us <= share_ * total_us_) return &each;
  }
  return nullptr;
}

Chosen Choices::choose(SizeClass size, std::span<const Contender> candidates, double limit_us) {
  Calls& calls = calls_[size];
  ++calls.count;
  exploring_ = false;
  if (candidates.size() == 1) return {candidates.front().device, ArrayReason::only_candidate};
  std::vector<Contender> in_time;
  for (const Contender& each : candidates)
    if (expected_us(calls, each) <= limit_us) in_time.push_back(each);
  if (!in_time.empty()) candidates = in_time;

  const Contender* best = &fastest(calls, candidates);
  ArrayReason reason = calls.timings.contains(best->device) ? ArrayReason::measured : ArrayReason::predicted;
  const auto current =
      calls.device ? std::ranges::find(candidates, *calls.device, &Contender::device) : candidates.end();
  if (current != candidates.end() && current->device != best->device &&
      expected_us(calls, *best) * margin_between(calls, *best, *current) >= expected_us(calls, *current)) {
    best = &*current;
    reason = ArrayReason::kept;
  }
  calls.device = best->device;
  if (const Contender* other = to_explore(calls, candidates, *best, limit_us)) {
    exploring_ = true;
    return {other->device, ArrayReason::explored};
  }
  return {best->device, reason};
}

void Choices::record(SizeClass size, std::size_t device, double us) {
  Calls& calls = calls_[size];
  calls.timings[device].add(us, calls.count);
  total_us_ += us;
  if (exploring_) explored_us_ += us;
  exploring_ = false;
}

const Timing* Choices::find(SizeClass size, std::size_t device) const {
  const auto calls = calls_.find(size);
  if (calls == calls_.end()) return nullptr;
  const auto timing = calls->second.timings.find(device);
  return timing == calls->second.timings.end() ? nullptr : &timing->second;
}

}  // namespace shunt::arrays
