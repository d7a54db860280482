#include "ops/experts/experts_parts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace shunt::experts_parts_tests {
namespace {

struct Part {
  std::uint32_t matrix;
  Range rows;
};

std::vector<Part> parts_of(const std::vector<std::uint64_t>& work, std::uint64_t m, std::uint64_t grain,
                           std::uint32_t share, std::uint32_t shares) {
  std::vector<Part> parts;
  for_each_part(
      static_cast<std::uint32_t>(work.size()), m, grain, share, shares,
      [&](std::uint32_t matrix) { return work[matrix]; },
      [&](std::uint32_t matrix, Range rows) { parts.push_back({matrix, rows}); });
  return parts;
}

const std::vector<std::vector<std::uint64_t>> kWorks = {{}, {0, 0}, {5}, {1, 1, 1, 1}, {9, 0, 520, 16, 0, 1, 40}};

TEST(ExpertsParts, OfAllSharesAreEveryRowOfEachMatrixWithWork) {
  for (const auto& work : kWorks)
    for (const std::uint64_t m : {1U, 12U, 130U})
      for (const std::uint32_t shares : {1U, 2U, 7U, 64U}) {
        std::vector<std::uint64_t> next(work.size());  // row of each matrix
        std::uint32_t last = 0;
        for (std::uint32_t share = 0; share < shares; ++share)
          for (const Part& part : parts_of(work, m, 12, share, shares)) {
            EXPECT_GE(part.matrix, last) << "matrices come in order";
            last = part.matrix;
            EXPECT_EQ(part.rows.begin, next[part.matrix]);
            EXPECT_LT(part.rows.begin, part.rows.end);
            EXPECT_TRUE(part.rows.end == m || part.rows.end % 12 == 0) << part.rows.end;
            next[part.matrix] = part.rows.end;
          }
        for (std::size_t matrix = 0; matrix < work.size(); ++matrix)
          EXPECT_EQ(next[matrix], work[matrix] == 0 ? 0 : m) << "matrix " << matrix << " shares " << shares;
      }
}

TEST(ExpertsParts, HaveLikeWork) {
  const std::vector<std::uint64_t> work = {9, 0, 520, 16, 1, 40};
  constexpr std::uint64_t kRows = 960;
  constexpr std::uint32_t kShares = 7;
  const std::uint64_t all = std::accumulate(work.begin(), work.end(), std::uint64_t{0}) * kRows;
  for (std::uint32_t share = 0; share < kShares; ++share) {
    std::uint64_t own = 0;
    for (const Part& part : parts_of(work, kRows, 4, share, kShares))
      own += work[part.matrix] * (part.rows.end - part.rows.begin);
    EXPECT_NEAR(static_cast<double>(own), static_cast<double>(all) / kShares, 4.0 * 520) << "share " << share;
  }
}

}  // namespace
}  // namespace shunt::experts_parts_tests
