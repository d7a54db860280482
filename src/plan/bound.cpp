#include "plan/bound.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace shunt {
namespace {

// Budgets become prices, in microseconds for all bytes that are held. Processors are priced too, since the plan ends
// with the last of them. At any prices, the placement that is cheapest part by part costs no more than the best one
// takes.
constexpr int kHalvings = 12;
constexpr double kMostPrice = 1e4;  // a multiple of the time found
constexpr int kShares = 8;          // how often work is redistributed

class Relaxation {
 public:
  Relaxation(const SearchProblem& problem, double found_us)
      : problem_(problem), devices_(problem.lanes.size()), found_us_(found_us), us_of_group_(us_of_groups(problem)) {
    for (const std::uint64_t bytes : newly_held_bytes(problem)) held_bytes_.push_back(static_cast<double>(bytes));
    all_bytes_ = std::max(1.0, std::accumulate(held_bytes_.begin(), held_bytes_.end(), 0.0));
    for (const Lane& lane : problem.lanes) resources_ = std::max<std::size_t>(resources_, lane.resource + 1);
  }

  // However work is spread, some processor does at least its share.
  [[nodiscard]] double of_loads() {
    std::vector<double> held(problem_.groups, 0);
    for (std::size_t i = 0; i < problem_.items.size(); ++i) held[problem_.items[i].group] += held_bytes_[i];
    std::vector<double> weights(resources_, 1.0 / static_cast<double>(resources_));
    std::vector<double> loads(resources_);
    double best = 0;
    for (int i = 0; i < kShares && best < found_us_; ++i) {
      best = std::max(best, climb([&](std::span<const double> prices, std::span<double> held_in) {
                        double sum = 0;
                        std::ranges::fill(loads, 0);
                        for (std::size_t group = 0; group < problem_.groups; ++group) {
                          const auto [us, device] = cheapest([&](std::size_t each) {
                            const Lane& lane = problem_.lanes[each];
                            return weights[lane.resource] * us_of_group_[group * devices_ + each] +
                                   prices[lane.memory] * held[group] / all_bytes_;
                          });
                          if (us == kCannot) return 0.0;
                          sum += us;
                          loads[problem_.lanes[device].resource] += us_of_group_[group * devices_ + device];
                          held_in[problem_.lanes[device].memory] += held[group];
                        }
                        return sum;
                      }));
      weigh(weights, loads);
    }
    return best;
  }

  // With any number of processors, each waits for what it reads.
  [[nodiscard]] double of_longest_path() {
    const auto items = static_cast<std::uint32_t>(problem_.items.size());
    const std::vector<double> held = held_by_longest_items();
    std::vector<double> end(items);
    std::vector<std::size_t> taken(items);
    std::vector<std::uint32_t> before(items);
    return climb([&](std::span<const double> prices, std::span<double> held_in) {
      std::vector<std::uint32_t> maker(problem_.value_bytes.size(), kNone);
      std::uint32_t last = kNone;
      for (std::uint32_t i = 0; i < items; ++i) {
        const SearchProblem::Item& item = problem_.items[i];
        before[i] = kNone;
        for (const std::uint32_t value : item.reads) {
          const std::uint32_t other = maker[value];
          if (other != kNone && (before[i] == kNone || end[other] > end[before[i]])) before[i] = other;
        }
        const auto [us, device] = cheapest([&](std::size_t each) {
          return item.us[each] + prices[problem_.lanes[each].memory] * held[i] / all_bytes_;
        });
        if (us == kCannot) return 0.0;
        taken[i] = device;
        end[i] = us + (before[i] == kNone ? 0 : end[before[i]]);
        if (item.made != kNone) maker[item.made] = i;
        if (last == kNone || end[i] > end[last]) last = i;
      }
      const double longest = end[last];
      for (; last != kNone; last = before[last]) held_in[problem_.lanes[taken[last]].memory] += held[last];
      return longest;
    });
  }

 private:
  // Returns the device of least cost, the first of equals, and that cost.
  template <class CostOf>
  [[nodiscard]] std::pair<double, std::size_t> cheapest(const CostOf& cost_of) const {
    std::pair<double, std::size_t> least = {kCannot, 0};
    for (std::size_t device = 0; device < devices_; ++device)
      if (const double cost = cost_of(device); cost < least.first) least = {cost, device};
    return least;
  }

  // Returns held bytes by item. A group is in one place, so all that it holds may be charged to its longest item.
  [[nodiscard]] std::vector<double> held_by_longest_items() const {
    std::vector<std::uint32_t> longest(problem_.groups, kNone);
    std::vector<double> held(problem_.items.size(), 0);
    for (std::uint32_t i = 0; i < problem_.items.size(); ++i) {
      std::uint32_t& its = longest[problem_.items[i].group];
      if (its == kNone || problem_.items[i].us.front() > problem_.items[its].us.front()) its = i;
    }
    for (std::size_t i = 0; i < problem_.items.size(); ++i) held[longest[problem_.items[i].group]] += held_bytes_[i];
    return held;
  }

  // Returns the best bound found for a relaxation, by raising the prices of full memories. `relaxed` returns its cost
  // at some prices, and adds what it holds in each memory.
  template <class Relaxed>
  [[nodiscard]] double climb(const Relaxed& relaxed) const {
    const std::size_t memories = problem_.budget_bytes.size();
    std::vector<double> prices(memories, 0);
    std::vector<double> held(memories);
    double best = 0;
    const auto relax = [&] {
      std::ranges::fill(held, 0);
      double bound = relaxed(prices, held);
      for (std::size_t memory = 0; memory < memories; ++memory)
        bound -= prices[memory] * static_cast<double>(problem_.budget_bytes[memory]) / all_bytes_;
      best = std::max(best, bound);
    };
    const auto is_full = [&](std::size_t memory) {
      return held[memory] > static_cast<double>(problem_.budget_bytes[memory]);
    };
    const auto is_full_at = [&](std::size_t memory, double price) {
      prices[memory] = price;
      relax();
      return is_full(memory);
    };
    relax();
    for (std::size_t memory = 0; memory < memories; ++memory) {
      if (!is_full(memory)) continue;
      double low = 0;
      double high = found_us_;
      while (high < kMostPrice * found_us_ && is_full_at(memory, high)) low = std::exchange(high, 2 * high);
      for (int i = 0; i < kHalvings; ++i) {
        const double middle = (low + high) / 2;
        (is_full_at(memory, middle) ? low : high) = middle;
      }
    }
    return best;
  }

  // Shifts weight to the processors that have more to do; all weights add up to 1.
  void weigh(std::vector<double>& weights, std::span<const double> loads) const {
    const double most = std::max(1e-9, *std::ranges::max_element(loads));
    double sum = 0;
    for (std::size_t resource = 0; resource < resources_; ++resource) {
      weights[resource] *= 0.75 + 0.5 * loads[resource] / most;
      sum += weights[resource];
    }
    for (double& weight : weights) weight /= sum;
  }

  const SearchProblem& problem_;
  std::size_t devices_;
  std::size_t resources_ = 0;
  double found_us_;
  std::vector<double> us_of_group_;  // by group and device
  std::vector<double> held_bytes_;   // by item: bytes that no earlier one holds
  double all_bytes_ = 1;
};

}  // namespace

double lower_bound_us(const SearchProblem& problem, double found_us) {
  if (problem.items.empty()) return 0;
  Relaxation relaxation(problem, found_us);
  return std::max(relaxation.of_loads(), relaxation.of_longest_path());
}

}  // namespace shunt
