#include "plan/storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace shunt {
namespace {

TEST(Owners, SayWhoTookEachByteLast) {
  constexpr std::uint32_t kBytes = 64;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 engine(seed);
    const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
    Owners owners;
    std::vector<std::uint32_t> owner_of(kBytes, kNone);
    for (std::uint32_t next = 0; next < 40; ++next) {
      const std::uint32_t begin = random() % kBytes;
      const std::uint32_t end = begin + random() % (kBytes - begin + 1);
      std::set<std::uint32_t> expected;
      for (std::uint32_t byte = begin; byte < end; ++byte) {
        if (owner_of[byte] != kNone) expected.insert(owner_of[byte]);
        owner_of[byte] = next;
      }
      std::set<std::uint32_t> visited;
      owners.take(begin, end, next, [&](std::uint32_t owner) { visited.insert(owner); });
      ASSERT_EQ(visited, expected) << "seed " << seed << ", bytes " << begin << " to " << end;
    }
  }
}

// Places each at the lowest offset free of all that live at the same time, largest first, by checking every pair.
std::vector<std::uint64_t> offsets_by_asking_all(std::vector<Residence> residences, std::uint64_t alignment) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < residences.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return residences[i].bytes; });
  std::vector<std::size_t> placed;
  for (const std::size_t index : order) {
    Residence& mine = residences[index];
    const auto is_covered = [&](std::uint64_t offset) {
      return std::ranges::any_of(placed, [&](std::size_t other) {
        const Residence& theirs = residences[other];
        return theirs.device == mine.device && live_together(theirs, mine) && offset < theirs.offset + theirs.bytes &&
               theirs.offset < offset + mine.bytes;
      });
    };
    mine.offset = 0;
    while (is_covered(mine.offset)) mine.offset += alignment;
    placed.push_back(index);
  }
  std::vector<std::uint64_t> offsets;
  for (const Residence& residence : residences) offsets.push_back(residence.offset);
  return offsets;
}

TEST(Storage, OffsetsAreThoseOfAskingEverybody) {
  constexpr std::uint64_t kAlignments[] = {8, 8};
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 engine(seed);
    const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
    std::vector<Residence> residences;
    for (std::uint32_t i = 0; i < 120; ++i) {
      const std::uint32_t first = random() % 200;
      const bool is_long = random() % 8 == 0;
      residences.push_back({.tensor = i,
                            .device = random() % 2,
                            .kind = StorageKind::value,
                            .bytes = 1 + random() % 100,
                            .first = first,
                            .last = first + random() % (is_long ? 200 : 8)});
    }
    const std::vector<std::uint64_t> expected = offsets_by_asking_all(residences, 8);
    const std::vector<std::uint64_t> arenas = assign_offsets(residences, kAlignments);
    for (std::size_t i = 0; i < residences.size(); ++i) {
      ASSERT_EQ(residences[i].offset, expected[i]) << "seed " << seed << ", residence " << i;
      EXPECT_LE(residences[i].offset + residences[i].bytes, arenas[residences[i].device]);
    }
  }
}

}  // namespace
}  // namespace shunt
