#include "plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace shunt {
namespace {

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
    Lane lane{.pool = device, .resource = device == 2 && below(4) == 0 ? 1 : device, .launch_us = between(1, 20)};
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

TEST(Search, ComesCloseToTheBestOfAllPlacements) {
  constexpr std::uint32_t kProblems = 500;
  std::vector<double> ratios;
  for (std::uint32_t seed = 0; seed < kProblems; ++seed) {
    const SearchProblem problem = random_problem(seed);
    const SearchResult found = search(problem);
    const Score best = brute_force(problem);
    ASSERT_EQ(found.score.over_bytes, 0) << "seed " << seed;
    ASSERT_LE(best.us, found.score.us) << "seed " << seed;
    ratios.push_back(found.score.us / best.us);
    EXPECT_LE(ratios.back(), 1.1) << "seed " << seed;
  }
  std::ranges::sort(ratios);
  RecordProperty("best", static_cast<int>(std::ranges::count(ratios, 1.0)));
  RecordProperty("ratio_at_95_percent", std::to_string(ratios[kProblems * 95 / 100]));
  RecordProperty("worst_ratio", std::to_string(ratios.back()));
  EXPECT_LE(ratios[kProblems * 95 / 100], 1.02);
}

TEST(Search, NothingToPlaceTakesNoTime) {
  SearchProblem problem;
  problem.lanes.resize(2);
  problem.budget_bytes = {kNoBudget};
  EXPECT_EQ(search(problem).score.us, 0);
}

}  // namespace
}  // namespace shunt
