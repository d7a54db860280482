// Threads are spread over memory nodes as their processors are, and the bytes that threads divide lie on their nodes.
#include "base/system/memory_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace shunt {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> nodes_of_threads(const MemoryNodes& nodes, std::uint32_t threads) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t thread = 0; thread < threads; ++thread) found.push_back(nodes.node_of(thread, threads));
  return found;
}

TEST(MemoryNodes, HaveTheirProcessors) {
  const MemoryNodes nodes = MemoryNodes::described("numa:2 core:2 pu:2");
  ASSERT_EQ(nodes.count(), 2U);
  EXPECT_THAT(nodes.processors(0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(nodes.processors(1), ElementsAre(4, 5, 6, 7));
}

TEST(MemoryNodes, OfSeveralPackagesCountTogether) {
  const MemoryNodes nodes = MemoryNodes::described("pack:2 numa:2 core:1 pu:1");
  ASSERT_EQ(nodes.count(), 4U);
  for (std::uint32_t node = 0; node < 4; ++node) EXPECT_THAT(nodes.processors(node), ElementsAre(node));
}

TEST(MemoryNodes, MayBeNumberedAcross) {
  const MemoryNodes nodes = MemoryNodes::described("numa:2 pu:2(indexes=0,2,1,3)");
  ASSERT_EQ(nodes.count(), 2U);
  EXPECT_THAT(nodes.processors(0), ElementsAre(0, 2));
  EXPECT_THAT(nodes.processors(1), ElementsAre(1, 3));
}

TEST(MemoryNodes, AreNoneIfThereIsOne) {
  EXPECT_EQ(MemoryNodes::described("numa:1 core:8 pu:1").count(), 0U);
  EXPECT_EQ(MemoryNodes::described("what").count(), 0U);
}

TEST(MemoryNodes, CountOnceForProcessorsWithMemoryOfTwoKinds) {
  EXPECT_EQ(MemoryNodes::described("[numa(memory=1GB)][numa(memory=1GB)] core:8 pu:1").count(), 0U);
  const MemoryNodes nodes = MemoryNodes::described("pack:2 [numa(memory=1GB)][numa(memory=1GB)] core:2 pu:1");
  ASSERT_EQ(nodes.count(), 2U);
  EXPECT_THAT(nodes.processors(1), ElementsAre(2, 3));
}

TEST(MemoryNodes, HaveMemory) {
  EXPECT_EQ(MemoryNodes::described("pack:2 [numa(memory=1GB)] core:2 pu:1").count(), 2U);
  EXPECT_EQ(MemoryNodes::described("pack:2 [numa(memory=0)] core:2 pu:1").count(), 0U);
}

TEST(MemoryNodes, ShareThreadsByTheirProcessors) {
  const MemoryNodes nodes = MemoryNodes::described("numa:2 core:4 pu:1");
  EXPECT_THAT(nodes_of_threads(nodes, 8), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(nodes_of_threads(nodes, 2), ElementsAre(0, 1));
  EXPECT_THAT(nodes_of_threads(nodes, 3), ElementsAre(0, 0, 1));
  EXPECT_THAT(nodes_of_threads(nodes, 1), ElementsAre(0));
  EXPECT_EQ(nodes.node_of(9, 20), 0U) << "more threads than processors";
  EXPECT_EQ(nodes.node_of(10, 20), 1U);
}

// Returns the end of each stretch, with its node, of bytes that threads divide.
std::vector<std::pair<std::uint64_t, std::uint32_t>> stretches(const MemoryNodes& nodes, std::uint64_t bytes,
                                                               std::uint32_t threads) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
  for (std::uint64_t at = 0; at < bytes; at = found.back().first) {
    const MemoryNodes::Stretch stretch = nodes.stretch_at(at, bytes, threads);
    found.emplace_back(stretch.end, stretch.node);
    if (stretch.end <= at) break;
  }
  return found;
}

TEST(MemoryNodes, HaveTheBytesOfTheirThreads) {
  using testing::Pair;
  const MemoryNodes nodes = MemoryNodes::described("numa:2 core:4 pu:1");
  EXPECT_THAT(stretches(nodes, 8000, 8), ElementsAre(Pair(4000, 0), Pair(8000, 1)));
  EXPECT_THAT(stretches(nodes, 1000, 3), ElementsAre(Pair(667, 0), Pair(1000, 1)));
  EXPECT_THAT(stretches(nodes, 1000, 1), ElementsAre(Pair(1000, 0)));
  EXPECT_THAT(stretches(nodes, 1, 2), ElementsAre(Pair(1, 0)));
  const std::uint64_t terabyte = std::uint64_t{1} << 40U;
  EXPECT_THAT(stretches(nodes, terabyte, 1024), ElementsAre(Pair(terabyte / 2, 0), Pair(terabyte, 1)));
}

TEST(MemoryNodes, EachByteIsInTheStretchOfItsThread) {
  const MemoryNodes nodes = MemoryNodes::described("numa:3 core:2 pu:1");
  for (const std::uint64_t bytes : {1U, 2U, 7U, 100U, 101U})
    for (std::uint32_t threads = 1; threads <= 9; ++threads)
      for (std::uint64_t at = 0; at < bytes; ++at) {
        const MemoryNodes::Stretch stretch = nodes.stretch_at(at, bytes, threads);
        ASSERT_GT(stretch.end, at);
        ASSERT_LE(stretch.end, bytes);
        ASSERT_EQ(stretch.node, nodes.node_of(static_cast<std::uint32_t>(at * threads / bytes), threads));
        ASSERT_EQ(nodes.stretch_at(stretch.end - 1, bytes, threads).node, stretch.node);
      }
}

TEST(MemoryNodes, OfAnotherMachineLeaveMemoryAsItIs) {
  const MemoryNodes nodes = MemoryNodes::described("numa:2 core:4 pu:1");
  std::vector<std::byte> memory(100'000, std::byte{7});
  {
    const MemoryNodes::Preference preference(nodes, 1);
    nodes.move(memory, 1);
  }
  nodes.interleave(memory);
  EXPECT_THAT(memory, testing::Each(std::byte{7}));
}

}  // namespace
}  // namespace shunt
