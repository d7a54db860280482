#include "trace/run_times.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace shunt::trace {
namespace {

constexpr unsigned bit_of(Activity activity) { return 1U << static_cast<unsigned>(activity); }

// Returns the name of what a transfer copies, "blk.0.attn_q.weight" of "copy blk.0.attn_q.weight[0:64] from cpu:simd".
std::string_view copied_name(std::string_view label) {
  constexpr std::string_view kCopy = "copy ";
  if (!label.starts_with(kCopy)) return {};
  label.remove_prefix(kCopy.size());
  return label.substr(0, std::min(label.find(" from "), label.find('[')));
}

// The begin or the end of something.
struct Change {
  std::uint64_t at_ns;
  Activity activity;
  int by;
};

}  // namespace

RunTimes::RunTimes(const Recording& recording, const std::set<std::string, std::less<>>& processors,
                   const std::set<std::string, std::less<>>& weights) {
  for (const ExecutionEvent& run : recording.events) {
    if (run.kind != Kind::run || run.failed) continue;
    const std::uint64_t end_ns = run.start_ns + run.duration_ns;
    std::vector<Change> changes;
    for (const ExecutionEvent& event : recording.events) {
      if (event.kind != Kind::program && event.kind != Kind::transfer) continue;
      const std::uint64_t begin = std::max(event.start_ns, run.start_ns);
      const std::uint64_t end = std::min(event.start_ns + event.duration_ns, end_ns);
      if (begin >= end) continue;
      Activity activity = processors.contains(recording.text_of(event.device)) ? Activity::processor : Activity::device;
      if (event.kind == Kind::transfer) {
        const bool is_weight = weights.contains(copied_name(recording.text_of(event.what)));
        activity = is_weight ? Activity::weights : Activity::values;
        if (is_weight) weight_bytes_ += static_cast<double>(event.bytes);
      }
      changes.push_back({begin, activity, 1});
      changes.push_back({end, activity, -1});
    }
    std::ranges::sort(changes, {}, &Change::at_ns);
    std::array<int, kActivities> going_on{};
    std::uint64_t before_ns = run.start_ns;
    const auto add_until = [&](std::uint64_t now_ns) {
      unsigned activities = 0;
      for (std::size_t i = 0; i < kActivities; ++i) activities |= going_on[i] > 0 ? 1U << i : 0U;
      us_by_activities_[activities] += trace::us_of(now_ns - before_ns);
      before_ns = now_ns;
    };
    for (const Change& change : changes) {
      add_until(change.at_ns);
      going_on[static_cast<std::size_t>(change.activity)] += change.by;
    }
    add_until(end_ns);
    total_us_ += trace::us_of(run.duration_ns);
    ++runs_;
  }
}

double RunTimes::us_of(Activity activity, std::initializer_list<Activity> others) const {
  unsigned not_these = 0;
  for (const Activity other : others) not_these |= bit_of(other);
  double sum = 0;
  for (unsigned activities = 0; activities < us_by_activities_.size(); ++activities)
    if ((activities & bit_of(activity)) != 0 && (activities & not_these) == 0) sum += us_by_activities_[activities];
  return mean(sum);
}

}  // namespace shunt::trace
