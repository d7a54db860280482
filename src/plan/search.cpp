#include "plan/search.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "plan/list_schedule.h"

namespace shunt {
namespace {

constexpr std::uint32_t kNotThere = kNone - 1;  // no step

}  // namespace

std::vector<double> us_of_groups(const SearchProblem& problem) {
  const std::size_t devices = problem.lanes.size();
  std::vector<double> us(problem.groups * devices, 0);
  for (const SearchProblem::Item& item : problem.items)
    for (std::size_t device = 0; device < devices; ++device) us[item.group * devices + device] += item.us[device];
  return us;
}

std::vector<std::uint64_t> newly_held_bytes(const SearchProblem& problem) {
  std::vector<std::uint64_t> bytes(problem.items.size(), 0);
  std::vector<bool> seen(problem.held_bytes.size(), false);
  for (std::size_t i = 0; i < problem.items.size(); ++i)
    for (const std::uint32_t held : problem.items[i].holds) {
      if (!seen[held]) bytes[i] += problem.held_bytes[held];
      seen[held] = true;
    }
  return bytes;
}

double us_to_start(const Lane& lane, std::uint32_t device, std::uint32_t before) {
  return before == device ? 0 : lane.launch_us + (before == kNone ? 0 : lane.wake_us);
}

Evaluator::Evaluator(const SearchProblem& problem)
    : problem_(problem),
      pools_(pools_of(problem.lanes)),
      memory_of_pool_(pools_),
      ends_(problem.items.size()),
      steps_(problem.lanes) {
  for (const Lane& lane : problem.lanes) memory_of_pool_[lane.pool] = lane.memory;
  shares_pools_ = pools_ < problem.lanes.size();
  std::vector<std::uint32_t> last(problem.value_bytes.size(), kNone);
  for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
    const SearchProblem::Item& item = problem.items[i];
    for (const std::uint32_t value : item.reads) last[value] = i;
    if (item.made != kNone) last[item.made] = i;
  }
  for (const std::uint32_t value : problem.outputs) last[value] = kNone;
  for (std::uint32_t value = 0; value < last.size(); ++value)
    if (last[value] != kNone) ends_[last[value]].push_back(value);
}

void Evaluator::begin() {
  steps_.clear();
  open_ = kNone;
  batch_bytes_ = 0;
  awaited_.clear();
  windows_.assign(problem_.lanes.size(), {});
  ops_steps_.clear();
  last_step_.assign(problem_.lanes.size(), kNone);
  there_.assign(problem_.value_bytes.size() * pools_, kNotThere);
  home_.assign(problem_.value_bytes.size(), kNone);
  held_.assign(problem_.held_bytes.size() * pools_, false);
  bytes_.assign(problem_.budget_bytes.size(), 0);
  most_bytes_.assign(problem_.budget_bytes.size(), 0);
  for (std::uint32_t value = 0; value < problem_.homes.size(); ++value) {
    if (problem_.homes[value] == kNone) continue;
    home_[value] = problem_.homes[value];
    there(value, problem_.lanes[home_[value]].pool) = kNone;
  }
}

void Evaluator::close() {
  open_ = kNone;
  awaited_.clear();
  batch_bytes_ = 0;
}

bool Evaluator::brings_news(const SearchProblem::Item& item, std::uint32_t device) const {
  return std::ranges::any_of(item.reads, [&](std::uint32_t value) {
    const std::uint32_t writer = there_[value * pools_ + problem_.lanes[device].pool];
    return writer < kNotThere && home_[value] != kNone && home_[value] != device &&
           problem_.lanes[home_[value]].pool == problem_.lanes[device].pool &&
           !steps_.waits_for(last_step_[device], writer);
  });
}

void Evaluator::count(std::uint32_t memory, std::uint64_t bytes) {
  bytes_[memory] += bytes;
  most_bytes_[memory] = std::max(most_bytes_[memory], bytes_[memory]);
}

std::uint32_t Evaluator::bring(std::uint32_t value, std::uint32_t device) {
  const std::uint32_t pool = problem_.lanes[device].pool;
  std::uint32_t& here = there(value, pool);
  if (here != kNotThere) return here;
  const std::uint32_t home = home_[value];
  const std::uint64_t bytes = problem_.value_bytes[value];
  count(memory_of_pool_[pool], bytes);
  if (home == kNone) return here = kNone;  // an input of the graph
  const std::uint32_t writer = there(value, problem_.lanes[home].pool);
  const bool is_streamed = problem_.copied(value) == Copied::weight;
  here = steps_.add_copy(home, device, bytes, problem_.copied(value));
  if (writer != kNone) steps_.wait_for(here, writer);
  const Lane& lane = problem_.lanes[device];
  if (!is_streamed) {
    const bool is_ready =
        is_brief(problem_.lanes[home], lane, bytes) && std::ranges::find(awaited_, writer) != awaited_.end();
    if (open_ != kNone && !is_ready) close();
    awaited_.push_back(writer);
    return here;
  }
  if (batch_bytes_ + bytes > lane.batch_bytes) close();
  batch_bytes_ += bytes;
  // A copy begins when there is room, as in schedule.cpp. It is for the open step, or for the next.
  const auto user = static_cast<std::uint32_t>(ops_steps_.size() - (open_ == kNone ? 0 : 1));
  if (const std::uint32_t ended = windows_[device].add(user, bytes, lane.window_bytes); ended != kNone)
    steps_.wait_for(here, ops_steps_[ended]);
  return here;
}

void Evaluator::add(std::uint32_t number, std::uint32_t device) {
  const SearchProblem::Item& item = problem_.items[number];
  const std::uint32_t pool = problem_.lanes[device].pool;
  if (open_ != device || (shares_pools_ && brings_news(item, device))) close();
  needed_.clear();
  for (const std::uint32_t value : item.reads)
    if (const std::uint32_t writer = bring(value, device); writer != kNone && home_[value] != device)
      needed_.push_back(writer);  // what the device itself made is there already, since it does one thing at a time
  for (const std::uint32_t held : item.holds) {
    if (held_[held * pools_ + pool]) continue;
    held_[held * pools_ + pool] = true;
    count(memory_of_pool_[pool], problem_.held_bytes[held]);
  }
  if (open_ == kNone) {
    const std::uint32_t before = std::exchange(last_step_[device], steps_.add_ops(device));
    if (before != kNone) steps_.wait_for(last_step_[device], before);
    open_ = device;
    ops_steps_.push_back(last_step_[device]);
  }
  const std::uint32_t step = last_step_[device];
  for (const std::uint32_t writer : needed_)
    if (writer != step) steps_.wait_for(step, writer);
  steps_.take(step, item.us[device]);
  if (item.made != kNone) {
    if (there(item.made, pool) == kNotThere) count(memory_of_pool_[pool], problem_.value_bytes[item.made]);
    there(item.made, pool) = step;
    home_[item.made] = device;
  }
  for (const std::uint32_t value : ends_[number])
    for (std::uint32_t other = 0; other < pools_; ++other) {
      const bool is_held = problem_.home_of(value) != kNone && problem_.lanes[problem_.homes[value]].pool == other;
      if (there(value, other) != kNotThere && !is_held) bytes_[memory_of_pool_[other]] -= problem_.value_bytes[value];
    }
}

Score Evaluator::operator()(std::span<const std::uint32_t> device_of_group) {
  begin();
  for (std::uint32_t i = 0; i < problem_.items.size(); ++i) {
    const std::uint32_t device = device_of_group[problem_.items[i].group];
    if (problem_.items[i].us[device] == kCannot) return {};
    add(i, device);
  }
  Score score{.us = steps_.run()};
  for (std::size_t memory = 0; memory < most_bytes_.size(); ++memory)
    if (most_bytes_[memory] > problem_.budget_bytes[memory])
      score.over_bytes += static_cast<double>(most_bytes_[memory] - problem_.budget_bytes[memory]);
  return score;
}

namespace {

// The work that a search may do, in items evaluated.
constexpr std::size_t kLeastWork = 100'000;
constexpr std::size_t kWorkForFewGroups = 400'000;
constexpr std::size_t kWorkPerItem = 20;
// With at most this many groups, all pairs of them are tried.
constexpr std::size_t kFewGroups = 16;
constexpr int kPrices = 12;
constexpr int kKicks = 8;

class Searcher {
 public:
  explicit Searcher(const SearchProblem& problem)
      : problem_(problem),
        evaluate_(problem),
        devices_(static_cast<std::uint32_t>(problem.lanes.size())),
        left_(problem.groups <= kFewGroups ? kWorkForFewGroups
                                           : std::max(kLeastWork, kWorkPerItem * problem.items.size())),
        first_item_(problem.groups, kNone),
        held_first_(newly_held_bytes(problem)),
        maker_(problem.value_bytes.size(), kNone),
        us_of_group_(us_of_groups(problem)) {
    for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
      const std::uint32_t group = problem.items[i].group;
      if (first_item_[group] != kNone) continue;
      first_item_[group] = i;
      order_.push_back(group);
    }
  }

  SearchResult run() {
    drop_dominated();
    for (SearchResult& each : single_devices(problem_)) {
      if (each.score < best_.score || best_.device_of_group.empty()) best_ = each;
      starts_.push_back(std::move(each));
    }
    if (order_.empty() || !has_choice()) return best_;
    if (try_all()) return best_;
    price_memory();
    if (auto placement = place_where_each_ends_first(problem_, us_of_group_); !placement.empty())
      consider(std::move(placement));
    start_from_what_ends_first();
    start_as_suggested();
    std::vector<SearchResult> starts = std::move(starts_);
    std::ranges::stable_sort(
        starts, [](const SearchResult& one, const SearchResult& other) { return one.score < other.score; });
    for (const SearchResult& start : starts) improve(start);
    for (int i = 0; i < kKicks && left_ > 0; ++i) improve(kicked());
    return best_;
  }

 private:
  using Placement = std::vector<std::uint32_t>;

  Score score(const Placement& placement) {
    left_ -= std::min(left_, problem_.items.size());
    return evaluate_(placement);
  }

  // Drops a group's slower devices among those that share a processor and a memory: they are never the better choice.
  void drop_dominated() {
    const std::vector<double> us = us_of_group_;
    const auto beats = [&](std::uint32_t group, std::uint32_t one, std::uint32_t other) {
      const Lane& a = problem_.lanes[one];
      const Lane& b = problem_.lanes[other];
      const double mine = us[group * devices_ + one];
      const double its = us[group * devices_ + other];
      return a.pool == b.pool && a.resource == b.resource && a.launch_us <= b.launch_us && a.wake_us <= b.wake_us &&
             (mine < its || (mine == its && one < other));
    };
    for (std::uint32_t group = 0; group < problem_.groups; ++group)
      for (std::uint32_t other = 0; other < devices_; ++other)
        for (std::uint32_t one = 0; one < devices_; ++one)
          if (one != other && beats(group, one, other)) us_of_group_[group * devices_ + other] = kCannot;
  }

  // Returns whether any group may run on more than one device.
  [[nodiscard]] bool has_choice() const {
    return std::ranges::any_of(order_, [&](std::uint32_t group) {
      const auto of_group = std::span(us_of_group_).subspan(std::size_t{group} * devices_, devices_);
      return std::ranges::count_if(of_group, [](double us) { return us != kCannot; }) > 1;
    });
  }

  void consider(Placement placement) {
    if (std::ranges::find(starts_, placement, &SearchResult::device_of_group) != starts_.end()) return;
    const Score its = score(placement);
    if (its < best_.score || best_.device_of_group.empty()) best_ = {placement, its};
    starts_.push_back({std::move(placement), its});
  }

  [[nodiscard]] bool can(std::uint32_t group, std::uint32_t device) const {
    return us_of_group_[group * devices_ + device] != kCannot;
  }

  // Tries all placements, if they are few enough.
  bool try_all() {
    double work = static_cast<double>(problem_.items.size());
    for (std::size_t i = 0; i < order_.size(); ++i) work *= devices_;
    if (work > static_cast<double>(left_)) return false;
    try_all_from(0, best_.device_of_group);
    return true;
  }
  void try_all_from(std::size_t place, const Placement& placement) {
    if (place == order_.size()) {
      if (const Score its = score(placement); its < best_.score) best_ = {placement, its};
      return;
    }
    for (std::uint32_t device = 0; device < devices_; ++device)
      if (can(order_[place], device)) try_all_from(place + 1, moved(placement, place, device));
  }

  // --- Along the order, with the device of the item before as state ---

  struct Cell {
    double us = kCannot;
    std::uint32_t before = kNone;     // the device of the item before
    std::vector<std::uint64_t> held;  // bytes by memory
  };

  // Returns the device of an earlier item on the way to (item, device).
  [[nodiscard]] std::uint32_t device_at(std::uint32_t wanted, std::uint32_t item, std::uint32_t device) const {
    for (; item > wanted; --item) device = way_[item * devices_ + device];
    return device;
  }

  // Returns the fastest placement if one thing happens at a time and each held byte has a price, in microseconds by
  // memory. Memories are not filled beyond their budgets.
  [[nodiscard]] std::optional<Placement> along_the_order(std::span<const double> prices) {
    const auto items = static_cast<std::uint32_t>(problem_.items.size());
    left_ -= std::min(left_, problem_.items.size());
    way_.assign(std::size_t{items} * devices_, kNone);
    std::fill(maker_.begin(), maker_.end(), kNone);
    std::vector<Cell> before(1, {.us = 0, .before = kNone, .held = std::vector<std::uint64_t>(prices.size(), 0)});
    for (std::uint32_t i = 0; i < items; ++i) {
      std::vector<Cell> now(devices_);
      for (std::uint32_t device = 0; device < devices_; ++device)
        for (std::uint32_t from = 0; from < before.size(); ++from)
          extend(now[device], before[from], i, device, i == 0 ? kNone : from, prices);
      for (std::uint32_t device = 0; device < devices_; ++device) way_[i * devices_ + device] = now[device].before;
      if (problem_.items[i].made != kNone) maker_[problem_.items[i].made] = i;
      before = std::move(now);
    }
    const auto least = std::ranges::min_element(before, {}, &Cell::us);
    if (least->us == kCannot) return std::nullopt;
    Placement placement(problem_.groups, 0);
    auto device = static_cast<std::uint32_t>(least - before.begin());
    for (std::uint32_t i = items; i-- > 0;) {
      placement[problem_.items[i].group] = device;
      device = way_[i * devices_ + device];
    }
    return placement;
  }

  void extend(Cell& to, const Cell& from, std::uint32_t number, std::uint32_t device, std::uint32_t before,
              std::span<const double> prices) const {
    const SearchProblem::Item& item = problem_.items[number];
    if (from.us == kCannot || !can(item.group, device)) return;
    const std::uint32_t first = first_item_[item.group];
    if (first != number && device_at(first, number - 1, before) != device) return;
    const Lane& lane = problem_.lanes[device];
    double us = from.us + item.us[device] + us_to_start(lane, device, before) +
                prices[lane.memory] * static_cast<double>(held_first_[number]);
    if (us >= to.us) return;
    for (const std::uint32_t value : item.reads) {
      if (maker_[value] == kNone && problem_.home_of(value) == kNone) continue;
      const std::uint32_t its =
          maker_[value] == kNone ? problem_.home_of(value) : device_at(maker_[value], number - 1, before);
      const Lane& home = problem_.lanes[its];
      us += predict_copy(home, lane, problem_.value_bytes[value], problem_.copied(value)).us;
    }
    if (us >= to.us) return;
    if (from.held[lane.memory] + held_first_[number] > problem_.budget_bytes[lane.memory]) return;
    to.us = us;
    to.before = before;
    to.held = from.held;
    to.held[lane.memory] += held_first_[number];
  }

  // Bisects the price of each full memory, so that what gains most per byte comes first.
  void price_memory() {
    std::vector<double> prices(problem_.budget_bytes.size(), 0);
    auto placement = along_the_order(prices);
    if (!placement) return;
    consider(*placement);
    std::uint64_t all = 0;
    for (const std::uint64_t bytes : problem_.held_bytes) all += bytes;
    for (std::size_t memory = 0; memory < prices.size(); ++memory) {
      if (all <= problem_.budget_bytes[memory] || all == 0) continue;
      double low = 0;
      double high = 2 * best_.score.us / static_cast<double>(all) * 16;
      for (int i = 0; i < kPrices && left_ > 0; ++i) {
        prices[memory] = (low + high) / 2;
        placement = along_the_order(prices);
        if (!placement) break;
        static_cast<void>(score(*placement));
        const bool is_full = evaluate_.memory_bytes()[memory] * 8 > problem_.budget_bytes[memory] * 7;
        consider(*placement);
        (is_full ? low : high) = prices[memory];
      }
      prices[memory] = 0;
    }
  }

  // --- With devices at once ---

  // Places each group in turn where the whole would end first, if the rest stayed as in the best placement so far.
  void start_from_what_ends_first() {
    if (best_.device_of_group.empty()) return;
    Placement placement = best_.device_of_group;
    if (std::size_t{problem_.groups} * devices_ * problem_.items.size() > left_ / 4) return;
    for (const std::uint32_t group : order_) {
      Score least;
      std::uint32_t taken = placement[group];
      for (std::uint32_t device = 0; device < devices_; ++device) {
        if (!can(group, device)) continue;
        placement[group] = device;
        if (const Score its = score(placement); its < least) {
          least = its;
          taken = device;
        }
      }
      placement[group] = taken;
    }
    consider(std::move(placement));
  }

  // Tries the best placement so far with the suggested groups moved.
  void start_as_suggested() {
    if (problem_.suggested.empty()) return;
    Placement placement = best_.device_of_group;
    for (const std::uint32_t group : order_)
      if (problem_.suggested[group] != kNone && can(group, problem_.suggested[group]))
        placement[group] = problem_.suggested[group];
    consider(std::move(placement));
  }

  // Returns the best placement so far with a quarter of the groups moved at random.
  SearchResult kicked() {
    Placement placement = best_.device_of_group;
    for (std::size_t i = 0; i < placement.size() / 4 + 1; ++i)
      placement = moved(placement, random_() % order_.size(), static_cast<std::uint32_t>(random_() % devices_));
    const Score its = score(placement);
    return {std::move(placement), its};
  }

  // Improves `from` until nothing helps, or the work is used up.
  void improve(const SearchResult& from) {
    SearchResult now = from;
    while (left_ > 0 && improve_once(now)) {
    }
    if (now.score < best_.score) best_ = std::move(now);
  }

  bool attempt(SearchResult& now, const Placement& placement) {
    if (left_ == 0) return false;
    const Score its = score(placement);
    if (!(its < now.score)) return false;
    now = {placement, its};
    return true;
  }

  bool improve_once(SearchResult& now) {
    if (order_.size() <= kFewGroups)
      return move_stretches(now) || swap_stretches(now) || move_any(now, now.device_of_group, 2, 0) ||
             move_any(now, now.device_of_group, 3, 0);
    return move_borders(now) || move_single_groups(now);
  }

  // Moves order_[first .. last] to one device, as far as it can run them.
  [[nodiscard]] Placement with_stretch(const Placement& placement, std::size_t first, std::size_t last,
                                       std::uint32_t device) const {
    Placement changed = placement;
    for (std::size_t i = first; i <= last; ++i)
      if (can(order_[i], device)) changed[order_[i]] = device;
    return changed;
  }

  [[nodiscard]] Placement moved(const Placement& placement, std::size_t place, std::uint32_t device) const {
    return with_stretch(placement, place, place, device);
  }

  bool move_stretches(SearchResult& now) {
    bool improved = false;
    for (std::size_t length = 1; length <= order_.size(); ++length)
      for (std::size_t first = 0; first + length <= order_.size(); ++first)
        for (std::uint32_t device = 0; device < devices_; ++device) {
          const Placement changed = with_stretch(now.device_of_group, first, first + length - 1, device);
          if (changed != now.device_of_group) improved = attempt(now, changed) || improved;
        }
    return improved;
  }

  // Swaps two devices over growing stretches of groups from order_[first] on.
  bool swap_stretches(SearchResult& now) {
    bool improved = false;
    for (std::size_t first = 0; first < order_.size(); ++first)
      for (std::uint32_t one = 0; one < devices_; ++one)
        for (std::uint32_t other = one + 1; other < devices_; ++other) {
          Placement changed = now.device_of_group;
          for (std::size_t last = first; last < order_.size(); ++last) {
            const std::uint32_t device = changed[order_[last]];
            if (device != one && device != other) continue;
            changed = moved(changed, last, device == one ? other : one);
            improved = attempt(now, changed) || improved;
          }
        }
    return improved;
  }

  // Moves `count` groups from order_[first] on, each to any device.
  bool move_any(SearchResult& now, const Placement& placement, int count, std::size_t first) {
    if (count == 0) return placement != now.device_of_group && attempt(now, placement);
    for (std::size_t i = first; i < order_.size() && left_ > 0; ++i)
      for (std::uint32_t device = 0; device < devices_; ++device)
        if (move_any(now, moved(placement, i, device), count - 1, i + 1)) return true;
    return false;
  }

  // Moves the borders at which the device changes, earlier or later, by powers of two.
  bool move_borders(SearchResult& now) {
    bool improved = false;
    for (std::size_t border = 1; border < order_.size(); ++border) {
      const std::uint32_t left = now.device_of_group[order_[border - 1]];
      const std::uint32_t right = now.device_of_group[order_[border]];
      if (left == right) continue;
      for (std::size_t by = 1; by < order_.size(); by *= 2) {
        if (border + by <= order_.size())
          improved = attempt(now, with_stretch(now.device_of_group, border, border + by - 1, left)) || improved;
        if (by <= border)
          improved = attempt(now, with_stretch(now.device_of_group, border - by, border - 1, right)) || improved;
      }
    }
    return improved;
  }

  bool move_single_groups(SearchResult& now) {
    bool improved = false;
    for (std::size_t i = 0; i < order_.size() && left_ > 0; ++i)
      for (std::uint32_t device = 0; device < devices_; ++device) {
        if (now.device_of_group[order_[i]] == device || !can(order_[i], device)) continue;
        improved = attempt(now, moved(now.device_of_group, i, device)) || improved;
      }
    return improved;
  }

  const SearchProblem& problem_;
  Evaluator evaluate_;
  std::uint32_t devices_;
  std::size_t left_;                       // work
  std::vector<std::uint32_t> order_;       // groups, in the order of their first items
  std::vector<std::uint32_t> first_item_;  // by group
  std::vector<std::uint64_t> held_first_;  // by item: bytes that no earlier one holds
  std::vector<std::uint32_t> maker_;       // by value: the item that makes it, on the way so far
  std::vector<double> us_of_group_;        // by group and device
  std::vector<std::uint32_t> way_;         // by item and device: the device of the item before
  std::vector<SearchResult> starts_;
  SearchResult best_;
  std::minstd_rand random_;  // the same seed each time
};

}  // namespace

std::vector<SearchResult> single_devices(const SearchProblem& problem) {
  Evaluator evaluate(problem);
  const std::vector<double> us = us_of_groups(problem);
  const auto devices = static_cast<std::uint32_t>(problem.lanes.size());
  std::vector<SearchResult> results;
  for (std::uint32_t device = 0; device < devices; ++device) {
    std::vector<std::uint32_t> placement(problem.groups, device);
    for (std::uint32_t group = 0; group < problem.groups; ++group) {
      const auto of_group = std::span(us).subspan(std::size_t{group} * devices, devices);
      if (of_group[device] == kCannot)
        placement[group] = static_cast<std::uint32_t>(std::ranges::min_element(of_group) - of_group.begin());
    }
    const Score score = evaluate(placement);
    results.push_back({std::move(placement), score});
  }
  return results;
}

SearchResult search(const SearchProblem& problem) { return Searcher(problem).run(); }

}  // namespace shunt
