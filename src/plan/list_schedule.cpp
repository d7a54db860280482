#include "plan/list_schedule.h"

#include <algorithm>
#include <utility>

namespace shunt {
namespace {

constexpr double kNowhere = -1;
// A weight is used while the next one arrives.
constexpr std::uint64_t kWeightsAtOnce = 2;

class ListScheduler {
 public:
  ListScheduler(const SearchProblem& problem, std::span<const double> us_of_group)
      : problem_(problem),
        us_of_group_(us_of_group),
        devices_(static_cast<std::uint32_t>(problem.lanes.size())),
        pools_(pools_of(problem.lanes)),
        free_(devices_, 0),
        there_(problem.value_bytes.size() * pools_, kNowhere),
        home_(problem.value_bytes.size(), kNone),
        link_free_(devices_, 0),
        windows_(devices_),
        ended_(problem.items.size(), 0) {
    std::ranges::copy(problem.homes, home_.begin());
  }

  [[nodiscard]] std::vector<std::uint32_t> schedule() {
    note_groups();
    std::vector<std::uint64_t> held(problem_.budget_bytes.size(), 0);
    std::vector<std::uint32_t> placement(problem_.groups, kNone);
    for (std::uint32_t number = 0; number < problem_.items.size(); ++number) {
      const std::uint32_t group = problem_.items[number].group;
      if (placement[group] == kNone) {
        placement[group] = first_to_end(number, held);
        if (placement[group] == kNone) return {};
        held[problem_.lanes[placement[group]].memory] += holds_[group];
      }
      place(number, placement[group]);
    }
    return placement;
  }

 private:
  // The outcome of placing something.
  struct Ends {
    double us = kCannot;
    double link_us = 0;  // of the copies of its weights
    CopyWindow window;
    std::uint64_t copied_bytes = 0;  // of weights
  };

  // Sums up what groups read when they begin, and hold.
  void note_groups() {
    reads_.resize(problem_.groups);
    holds_.assign(problem_.groups, 0);
    std::vector<bool> has_begun(problem_.groups, false);
    const std::vector<std::uint64_t> held_first = newly_held_bytes(problem_);
    for (std::uint32_t number = 0; number < problem_.items.size(); ++number) {
      const SearchProblem::Item& item = problem_.items[number];
      holds_[item.group] += held_first[number];
      for (const std::uint32_t value : item.reads)
        if (!has_begun[item.group] || problem_.copied(value) == Copied::weight) reads_[item.group].push_back(value);
      has_begun[item.group] = true;
    }
  }

  // Returns the device on which the group that an item begins would end first; kNone: it has no room.
  [[nodiscard]] std::uint32_t first_to_end(std::uint32_t item, std::span<const std::uint64_t> held) const {
    const std::uint32_t group = problem_.items[item].group;
    double least_us = kCannot;
    std::uint32_t first = kNone;
    for (std::uint32_t device = 0; device < devices_; ++device) {
      const double us = us_of_group_[std::size_t{group} * devices_ + device];
      if (us == kCannot) continue;
      const std::uint32_t memory = problem_.lanes[device].memory;
      const Ends its = ends(reads_[group], us, item, device);
      const std::uint64_t bytes = holds_[group] + kWeightsAtOnce * its.copied_bytes;
      if (its.us >= least_us || held[memory] + bytes > problem_.budget_bytes[memory]) continue;
      least_us = its.us;
      first = device;
    }
    return first;
  }

  // Predicts `us` of work that reads these values, for an item.
  [[nodiscard]] Ends ends(std::span<const std::uint32_t> reads, double us, std::uint32_t item,
                          std::uint32_t device) const {
    const Lane& lane = problem_.lanes[device];
    Ends ends{.us = free_[device], .link_us = link_free_[device], .window = windows_[device]};
    for (const std::uint32_t value : reads) {
      double here = there_[value * pools_ + lane.pool];
      if (here == kNowhere && home_[value] != kNone) {
        const Lane& from = problem_.lanes[home_[value]];
        const std::uint64_t bytes = problem_.value_bytes[value];
        const double copy_us = predict_copy(from, lane, bytes, problem_.copied(value)).us;
        here = std::max(0.0, there_[value * pools_ + from.pool]) + copy_us;
        if (problem_.copied(value) == Copied::weight && copy_us > 0) {
          const std::uint32_t ended = ends.window.add(item, bytes, lane.window_bytes);
          here = ends.link_us = std::max(ends.link_us, ended == kNone ? 0 : ended_[ended]) + copy_us;
          ends.copied_bytes += bytes;
        }
      }
      ends.us = std::max(ends.us, here);
    }
    ends.us += us + us_to_start(lane, device, before_);
    return ends;
  }

  // Notes that an item is on a device.
  void place(std::uint32_t number, std::uint32_t device) {
    const SearchProblem::Item& item = problem_.items[number];
    Ends its = ends(item.reads, item.us[device], number, device);
    const std::uint32_t pool = problem_.lanes[device].pool;
    for (const std::uint32_t value : item.reads)
      if (double& here = there_[value * pools_ + pool]; here == kNowhere) here = its.us;
    link_free_[device] = its.link_us;
    windows_[device] = std::move(its.window);
    if (item.made != kNone) {
      there_[item.made * pools_ + pool] = its.us;
      home_[item.made] = device;
    }
    for (std::uint32_t other = 0; other < devices_; ++other)
      if (problem_.lanes[other].resource == problem_.lanes[device].resource) free_[other] = its.us;
    ended_[number] = its.us;
    before_ = device;
  }

  const SearchProblem& problem_;
  const std::span<const double> us_of_group_;
  const std::uint32_t devices_;
  const std::size_t pools_;
  std::vector<std::vector<std::uint32_t>> reads_;  // by group: of its first item, and all weights
  std::vector<std::uint64_t> holds_;               // by group
  std::vector<double> free_;                       // by device
  std::vector<double> there_;                      // by value and pool: since when; kNowhere: it is not
  std::vector<std::uint32_t> home_;                // by value: the device that has it
  std::vector<double> link_free_;                  // by device: when its link has carried the weights so far
  std::vector<CopyWindow> windows_;                // by device, of items
  std::vector<double> ended_;                      // by item
  std::uint32_t before_ = kNone;                   // the device of the last item
};

}  // namespace

std::vector<std::uint32_t> place_where_each_ends_first(const SearchProblem& problem,
                                                       std::span<const double> us_of_group) {
  return ListScheduler(problem, us_of_group).schedule();
}

}  // namespace shunt
