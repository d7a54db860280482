// Copies of weights to the simulated CUDA device for the duration of a step: from memory that is pinned or not, and
// beside other work.
#include "simulated/weight_copies.h"

#include <algorithm>

namespace shunt::simulated {
namespace {

TEST_F(WeightCopies, NeighboursThatShareAPageArePinnedSideBySide) {
  make(DType::F32, 64, 1000);
  const std::uint64_t half = content_.size() / 2 + 12;  // within a page
  auto first = pin(0, half);
  auto second = pin(half, content_.size() - half);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  ASSERT_TRUE(second.has_value()) << second.error().message;
  ASSERT_TRUE(pin(0, content_.size()).has_value()) << "what others have pinned is shared";
  ASSERT_TRUE(copy(Layout::rows).wait().has_value()) << "over the border of both";
  EXPECT_EQ(came(), content_);
  first->reset();
  ASSERT_TRUE(copy(Layout::rows).wait().has_value()) << "some of it is pinned no more";
  second->reset();
  EXPECT_TRUE(pin(0, content_.size()).has_value());
}

// The driver copies from pinned memory after the call.
TEST_F(WeightCopies, WhatIsWrittenFromPinnedMemoryMayChangeAtOnce) {
  make(DType::F32, 16, 16);
  const auto pinned = pin(0, content_.size());
  ASSERT_TRUE(pinned.has_value());
  const std::vector<std::byte> sent = content_;
  Event written = device().write({weight_.get(), 0, content_.size()}, content_);
  ASSERT_TRUE(written.wait().has_value());
  std::ranges::fill(content_, std::byte{0});
  EXPECT_EQ(came(), sent);
}

TEST_F(WeightCopies, MemoryThatCannotBePinnedIsCopiedToo) {
  make(DType::Q8_0, 32, 256);
  Simulation::control().set_fault(Fault::cannot_register);
  EXPECT_FALSE(pin(0, content_.size()).has_value());
  ASSERT_TRUE(copy(Layout::rows).wait().has_value());
  EXPECT_EQ(came(), content_);
}

TEST_F(WeightCopies, ArriveWhileTheDeviceHasOtherWork) {
  make(DType::Q8_0, 32, 256);
  const auto pinned = pin(0, content_.size());
  Event sum = submit();
  Event arrived = copy(Layout::rows);
  EXPECT_TRUE(sum.wait().has_value());
  EXPECT_TRUE(arrived.wait().has_value());
  EXPECT_FALSE(device().advance()) << "nothing is left to do";
  EXPECT_EQ(came(), content_);
}

}  // namespace
}  // namespace shunt::simulated
