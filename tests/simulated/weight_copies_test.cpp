// Copies of weights to the simulated CUDA device for the duration of a step, and of results to the host: from and to
// memory that is pinned or not, and beside other work.
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

// Memory of the host, of which the device may write parts that neighbour.
class PinnedResults : public WeightCopies {
 protected:
  [[nodiscard]] Result<std::shared_ptr<const void>> pin_part(std::size_t begin, std::size_t count, HostAccess access) {
    return device().pin_host(std::as_bytes(std::span(memory_).subspan(begin, count)), access, nullptr);
  }
  [[nodiscard]] Event read_result() {
    return device().read({y_.get(), 0, kBytes}, std::as_writable_bytes(std::span(memory_).subspan(kBegin, kElements)));
  }
  [[nodiscard]] bool has_result() const {
    return std::ranges::all_of(std::span(memory_).subspan(kBegin, kElements), [](float each) { return each == 2; });
  }

  static constexpr std::size_t kBegin = 4096 - kElements / 2;
  std::vector<float> memory_ = std::vector<float>(8192, 0.0F);
};

TEST_F(PinnedResults, AreThereAfterWhatWritesThem) {
  auto first = pin_part(0, 4096, HostAccess::reads_and_writes);
  const auto second = pin_part(4096, 4096, HostAccess::reads_and_writes);
  ASSERT_TRUE(first.has_value() && second.has_value());
  Event sum = submit();
  ASSERT_TRUE(read_result().wait().has_value()) << "over the border of both";
  EXPECT_TRUE(has_result());
  EXPECT_TRUE(sum.wait().has_value());
  EXPECT_FALSE(device().advance()) << "nothing is left to do";
  std::ranges::fill(memory_, 0.0F);
  first->reset();
  ASSERT_TRUE(read_result().wait().has_value()) << "some of it is pinned no more";
  EXPECT_TRUE(has_result());
}

TEST_F(PinnedResults, DoNotGoStraightToMemoryThatIsPinnedForReading) {
  const auto pinned = pin_part(0, 8192, HostAccess::reads);
  ASSERT_TRUE(pinned.has_value());
  Event sum = submit();
  Event read = read_result();
  EXPECT_TRUE(sum.wait().has_value());
  ASSERT_TRUE(read.wait().has_value());
  EXPECT_TRUE(has_result());
}

TEST_F(PinnedResults, FailWithTheirDevice) {
  const auto pinned = pin_part(0, 8192, HostAccess::reads_and_writes);
  ASSERT_TRUE(pinned.has_value());
  Simulation::control().set_fault(Fault::illegal_address);
  Event sum = submit();
  Event read = read_result();
  EXPECT_FALSE(read.wait().has_value());
  EXPECT_FALSE(sum.wait().has_value());
  EXPECT_FALSE(device().health().status.has_value());
}

}  // namespace
}  // namespace shunt::simulated
