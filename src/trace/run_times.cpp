#include "trace/run_times.h"

#include <algorithm>
#include <tuple>

#include "trace/recording.h"

namespace shunt::trace {
namespace {

constexpr unsigned bit_of(Activity activity) { return 1U << static_cast<unsigned>(activity); }

Activity activity_of(const Recording& recording, const ExecutionEvent& event,
                     const std::set<std::string, std::less<>>& processors) {
  if (event.kind == Kind::transfer)
    return recording.text_of(event.reason) == kWeightOfStep ? Activity::weights : Activity::values;
  return processors.contains(recording.text_of(event.device)) ? Activity::processor : Activity::device;
}

}  // namespace

// Goes once through all changes in the order of their times. It sums what went on from the first change on; what went
// on during a run is the difference between its end and its begin.
class RunSweep {
 public:
  // The begin or the end of an activity, or of a run.
  struct Change {
    std::uint64_t at_ns = 0;
    bool begins = false;
    std::optional<Activity> activity;
    std::uint64_t bytes = 0;
    RunTimes* group = nullptr;  // of a run
  };

  void add(const Change& begin, std::uint64_t end_ns) {
    if (begin.at_ns >= end_ns) return;
    changes_.push_back(begin);
    changes_.push_back(begin);
    changes_.back().at_ns = end_ns;
    changes_.back().begins = false;
  }
  static void count(RunTimes& group, const ExecutionEvent& run) {
    ++group.runs_;
    group.predicted_us_ += static_cast<double>(run.predicted_us);
  }
  void go() {
    // What ends at a moment does so before others begin.
    std::ranges::sort(changes_, {}, [](const Change& change) { return std::tuple(change.at_ns, change.begins); });
    std::uint64_t before_ns = 0;
    for (const Change& change : changes_) {
      so_far_.ns_[activities()] += change.at_ns - before_ns;
      before_ns = change.at_ns;
      if (change.group != nullptr)
        change.begins ? begin_run(*change.group) : end_run(*change.group);
      else
        change_activity(change);
    }
  }

 private:
  [[nodiscard]] unsigned activities() const {
    unsigned set = 0;
    for (std::size_t i = 0; i < kActivities; ++i) set |= going_on_[i] > 0 ? 1U << i : 0U;
    return set;
  }
  void change_activity(const Change& change) {
    going_on_[static_cast<std::size_t>(*change.activity)] += change.begins ? 1 : -1;
    if (*change.activity != Activity::weights) return;
    if (change.begins) {
      so_far_.weight_bytes_ += change.bytes;
      traveling_bytes_ += change.bytes;
    } else {
      traveling_bytes_ -= change.bytes;
    }
  }
  // Unsigned sums wrap around on the way, but not in the end.
  void begin_run(RunTimes& group) {
    for (std::size_t i = 0; i < group.ns_.size(); ++i) group.ns_[i] -= so_far_.ns_[i];
    group.weight_bytes_ -= so_far_.weight_bytes_ - traveling_bytes_;
  }
  void end_run(RunTimes& group) {
    for (std::size_t i = 0; i < group.ns_.size(); ++i) group.ns_[i] += so_far_.ns_[i];
    group.weight_bytes_ += so_far_.weight_bytes_;
  }

  std::vector<Change> changes_;
  std::array<int, kActivities> going_on_{};
  std::uint64_t traveling_bytes_ = 0;
  RunTimes so_far_;
};

double RunTimes::us() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t ns : ns_) sum += ns;
  return mean(trace::us_of(sum));
}

// The time of an activity in which none of this set went on.
double RunTimes::us_without(Activity activity, unsigned others) const {
  std::uint64_t sum = 0;
  for (unsigned activities = 0; activities < ns_.size(); ++activities)
    if ((activities & bit_of(activity)) != 0 && (activities & others) == 0) sum += ns_[activities];
  return mean(trace::us_of(sum));
}

std::array<double, kActivities> RunTimes::us_in_turn(const std::array<Activity, kActivities>& order) const {
  std::array<double, kActivities> us{};
  unsigned before = 0;
  for (std::size_t i = 0; i < kActivities; ++i) {
    us[i] = us_without(order[i], before);
    before |= bit_of(order[i]);
  }
  return us;
}

std::vector<RunTimes> run_times_of(const Recording& recording, const std::set<std::string, std::less<>>& processors,
                                   std::size_t groups, const GroupOfRun& group_of) {
  std::vector<RunTimes> times(groups);
  RunSweep sweep;
  const std::uint64_t complete_ns = complete_since_ns(recording);
  for (const ExecutionEvent& event : recording.events) {
    const std::uint64_t end_ns = event.start_ns + event.duration_ns;
    if (event.kind == Kind::program || event.kind == Kind::transfer)
      sweep.add({.at_ns = event.start_ns,
                 .begins = true,
                 .activity = activity_of(recording, event, processors),
                 .bytes = event.bytes},
                end_ns);
    if (event.kind != Kind::run || event.failed || event.start_ns < complete_ns) continue;
    const std::optional<std::size_t> group = group_of(event);
    if (!group) continue;
    RunSweep::count(times[*group], event);
    sweep.add({.at_ns = event.start_ns, .begins = true, .group = &times[*group]}, end_ns);
  }
  sweep.go();
  return times;
}

}  // namespace shunt::trace
