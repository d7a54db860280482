#include "plan/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>

#include "plan/bound.h"

namespace shunt {
namespace {

constexpr std::uint32_t kProblems = 500;  // by seed

// A problem of up to 12 groups on two or three devices: a chain with branches, weights, budgets that may bind, and
// devices that cannot run everything.
SearchProblem random_problem(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  const auto between = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random()) / 4294967295.0;
  };
  SearchProblem problem;
  const std::uint32_t devices = 2 + below(2);
  for (std::uint32_t device = 0; device < devices; ++device) {
    Lane lane{.pool = device,
              .memory = device,
              .resource = device == 2 && below(4) == 0 ? 1 : device,
              .launch_us = between(1, 20)};
    if (below(2) == 0) lane.wake_us = between(1, 40);
    if (device != 0) lane.to_host = {.us = between(1, 30), .bytes_per_s = 1e6 / between(1e-5, 1e-3)};
    lane.from_host = lane.to_host;
    problem.lanes.push_back(lane);
  }
  const std::uint32_t items = 4 + below(9);
  std::uint64_t held = 0;
  for (std::uint32_t i = 0; i < items; ++i) {
    SearchProblem::Item item{.group = i, .made = i, .reads = {}, .holds = {}, .us = {}};
    if (i > 0) item.reads.push_back(below(3) == 0 ? below(i) : i - 1);
    if (i > 1 && below(3) == 0) item.reads.push_back(below(i));
    if (below(2) == 0) {
      item.holds.push_back(static_cast<std::uint32_t>(problem.held_bytes.size()));
      problem.held_bytes.push_back(1000 + below(1U << 20U));
      held += problem.held_bytes.back();
    }
    const double work = between(1, 200);
    for (std::uint32_t device = 0; device < devices; ++device)
      item.us.push_back(device > 0 && below(8) == 0 ? kCannot : work * between(0.2, 2));
    problem.value_bytes.push_back(100 + below(1U << 16U));
    problem.items.push_back(item);
  }
  problem.outputs = {items - 1};
  problem.groups = items;
  for (std::uint32_t pool = 0; pool < devices; ++pool)
    problem.budget_bytes.push_back(pool == 0 || below(2) == 0 ? std::uint64_t{1} << 40U
                                                              : held / 3 + (std::uint64_t{1} << 18U));
  return problem;
}

Score brute_force(const SearchProblem& problem) {
  Evaluator evaluate(problem);
  std::vector<std::uint32_t> placement(problem.groups, 0);
  Score best;
  best.over_bytes = kCannot;
  while (true) {
    if (const Score score = evaluate(placement); score.us != kCannot && score < best) best = score;
    std::size_t group = 0;
    while (group < placement.size() && ++placement[group] == problem.lanes.size()) placement[group++] = 0;
    if (group == placement.size()) return best;
  }
}

std::string quantiles(std::vector<double> values) {
  std::ranges::sort(values);
  return fmt::format("median {:.3f}, 95 % {:.3f}, worst {:.3f}", values[values.size() / 2],
                     values[values.size() * 95 / 100], values.back());
}

// The bound is no higher than the best of all placements. One test for both, as finding the best takes most of the
// time.
TEST(Search, ComesCloseToTheBestOfAllPlacements) {
  std::vector<double> ratios;
  std::vector<double> gaps;
  for (std::uint32_t seed = 0; seed < kProblems; ++seed) {
    const SearchProblem problem = random_problem(seed);
    const SearchResult found = search(problem);
    const Score best = brute_force(problem);
    ASSERT_EQ(found.score.over_bytes, 0) << "seed " << seed;
    ASSERT_LE(best.us, found.score.us) << "seed " << seed;
    ratios.push_back(found.score.us / best.us);
    EXPECT_LE(ratios.back(), 1.1) << "seed " << seed;
    // Holds for any solution found, however much worse than the best.
    for (const double found_us : {best.us, 1.5 * best.us})
      ASSERT_LE(lower_bound_us(problem, found_us), best.us * (1 + 1e-9)) << "seed " << seed;
    const double bound = lower_bound_us(problem, best.us);
    ASSERT_GT(bound, 0) << "seed " << seed;
    gaps.push_back(best.us / bound);
  }
  std::ranges::sort(ratios);
  RecordProperty("best", static_cast<int>(std::ranges::count(ratios, 1.0)));
  RecordProperty("ratio_at_95_percent", std::to_string(ratios[kProblems * 95 / 100]));
  RecordProperty("worst_ratio", std::to_string(ratios.back()));
  RecordProperty("best_over_bound", quantiles(gaps));
  EXPECT_LE(ratios[kProblems * 95 / 100], 1.02);
}

// A hundred groups in a few branches, too many to try all placements.
SearchProblem large_problem(std::uint32_t seed) {
  std::mt19937 random(seed);
  SearchProblem large;
  while (large.groups < 100) {
    SearchProblem part = random_problem(static_cast<std::uint32_t>(random()));
    if (large.lanes.empty()) {
      large.lanes = part.lanes;
      large.budget_bytes.assign(part.lanes.size(), 0);
    }
    const auto values = static_cast<std::uint32_t>(large.value_bytes.size());
    const auto held = static_cast<std::uint32_t>(large.held_bytes.size());
    for (SearchProblem::Item& item : part.items) {
      item.group += large.groups;
      item.made += values;
      for (std::uint32_t& value : item.reads) value += values;
      for (std::uint32_t& each : item.holds) each += held;
      if (item.reads.empty() && values > 0 && random() % 2 == 0) item.reads.push_back(values - 1);
      item.us.resize(large.lanes.size(), item.us.front());
    }
    std::ranges::move(part.items, std::back_inserter(large.items));
    large.value_bytes.insert(large.value_bytes.end(), part.value_bytes.begin(), part.value_bytes.end());
    large.held_bytes.insert(large.held_bytes.end(), part.held_bytes.begin(), part.held_bytes.end());
    large.groups += part.groups;
    large.outputs.push_back(static_cast<std::uint32_t>(large.value_bytes.size()) - 1);
  }
  const std::uint64_t all = std::accumulate(large.held_bytes.begin(), large.held_bytes.end(), std::uint64_t{0});
  for (std::size_t pool = 0; pool < large.budget_bytes.size(); ++pool)
    large.budget_bytes[pool] = pool == 0 ? std::uint64_t{1} << 40U : all / 3 + (std::uint64_t{1} << 20U);
  return large;
}

TEST(Bound, ShowsHowFarLargeProblemsMayBeFromTheBest) {
  std::vector<double> gaps;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const SearchProblem problem = large_problem(seed);
    const SearchResult found = search(problem);
    ASSERT_EQ(found.score.over_bytes, 0) << "seed " << seed;
    const double bound = lower_bound_us(problem, found.score.us);
    ASSERT_LE(bound, found.score.us * (1 + 1e-9)) << "seed " << seed;
    gaps.push_back(found.score.us / bound);
  }
  RecordProperty("found_over_bound", quantiles(gaps));
  EXPECT_LT(*std::ranges::min_element(gaps), 2) << "a bound that says something";
}

// Two equal devices: each does half of the independent work.
TEST(Bound, SharesWorkThatIsIndependent) {
  SearchProblem problem;
  problem.lanes = {{.pool = 0, .memory = 0, .resource = 0}, {.pool = 1, .memory = 1, .resource = 1}};
  problem.budget_bytes = {kNoBudget, kNoBudget};
  problem.groups = 8;
  for (std::uint32_t i = 0; i < problem.groups; ++i) {
    problem.items.push_back({.group = i, .made = i, .reads = {}, .holds = {}, .us = {10, 10}});
    problem.value_bytes.push_back(0);
  }
  EXPECT_NEAR(lower_bound_us(problem, 1000), 40, 1e-9);
  for (std::uint32_t i = 1; i < problem.groups; ++i) problem.items[i].reads = {i - 1};
  EXPECT_NEAR(lower_bound_us(problem, 1000), 80, 1e-9) << "one after the other";
}

// Half of the weights fit the device that is ten times as fast.
TEST(Bound, PricesMemory) {
  SearchProblem problem;
  problem.lanes = {{.pool = 0, .memory = 0, .resource = 0}, {.pool = 1, .memory = 1, .resource = 1}};
  problem.budget_bytes = {kNoBudget, 4000};
  problem.groups = 8;
  for (std::uint32_t i = 0; i < problem.groups; ++i) {
    problem.items.push_back({.group = i, .made = i, .reads = {}, .holds = {i}, .us = {100, 10}});
    if (i > 0) problem.items[i].reads = {i - 1};
    problem.value_bytes.push_back(0);
    problem.held_bytes.push_back(1000);
  }
  const double best_us = 4 * 100 + 4 * 10;
  EXPECT_LE(lower_bound_us(problem, best_us), best_us * (1 + 1e-9));
  EXPECT_GE(lower_bound_us(problem, best_us), 0.99 * best_us);
}

TEST(Search, NothingToPlaceTakesNoTime) {
  SearchProblem problem;
  problem.lanes.resize(2);
  problem.budget_bytes = {kNoBudget};
  EXPECT_EQ(search(problem).score.us, 0);
}

}  // namespace
}  // namespace shunt
