// Barriers are placed where work depends on other work, and nowhere else.
#include "devices/hazards.h"

#include <gtest/gtest.h>

#include <array>

#include "devices/shaders/dispatch.h"

namespace shunt {
namespace {

class Memory final : public Buffer {
 public:
  [[nodiscard]] std::uint64_t bytes() const override { return 1024; }
  [[nodiscard]] std::span<std::byte> host() override { return {}; }
};

class HazardsTest : public testing::Test {
 protected:
  Binding at(std::uint64_t offset, std::uint64_t bytes) { return {&arena_, offset, bytes}; }

  Memory arena_;
  Memory other_;
  Hazards hazards_;
};

TEST_F(HazardsTest, ReadsWaitForWritesOnly) {
  hazards_.note(Access::read(at(0, 16)));
  EXPECT_FALSE(hazards_.has(Access::read(at(0, 16))));
  EXPECT_TRUE(hazards_.has(Access::write(at(12, 16)))) << "WAR";
  hazards_.note(Access::write(at(64, 16)));
  EXPECT_TRUE(hazards_.has(Access::read(at(48, 20)))) << "RAW";
  EXPECT_TRUE(hazards_.has(Access::write(at(64, 1)))) << "WAW";
  hazards_.clear();
  EXPECT_FALSE(hazards_.has(Access::write(at(64, 16))));
}

TEST_F(HazardsTest, NeighboursAndOtherBuffersDoNotMeet) {
  hazards_.note(Access::write(at(16, 16)));
  EXPECT_FALSE(hazards_.has(Access::write(at(0, 16))));
  EXPECT_FALSE(hazards_.has(Access::write(at(32, 16))));
  EXPECT_FALSE(hazards_.has(Access::write({&other_, 16, 16})));
  EXPECT_FALSE(hazards_.has(Access::read({})));
  EXPECT_FALSE(hazards_.has(Access::read(at(20, 0)))) << "nothing is read";
}

TEST_F(HazardsTest, BytesOfOneWordMeet) {
  hazards_.note(Access::write(at(0, 6)));
  EXPECT_TRUE(hazards_.has(Access::write(at(6, 2)))) << "kernels write whole words";
}

TEST_F(HazardsTest, JoinedStretchesAreStillSeen) {
  hazards_.note(Access::write(at(0, 16)));
  hazards_.note(Access::write(at(16, 16)));
  hazards_.note(Access::read(at(64, 16)));
  EXPECT_TRUE(hazards_.has(Access::read(at(4, 4))));
  EXPECT_TRUE(hazards_.has(Access::read(at(28, 4))));
  EXPECT_FALSE(hazards_.has(Access::write(at(32, 32))));
  Hazards others;
  others.note(Access::read(at(64, 16)));
  EXPECT_FALSE(hazards_.has(others));
  others.note(Access::read(at(0, 4)));
  EXPECT_TRUE(hazards_.has(others));
}

class DispatchBarriers : public HazardsTest {
 protected:
  void SetUp() override {
    if (shaders().empty()) GTEST_SKIP() << "this build has no shaders: glslc was missing";
  }
  // Slots of 64 bytes: writes the sum of two slots into a third.
  void add(std::uint64_t a, std::uint64_t b, std::uint64_t sum) {
    ops_.push_back({.call = {Op::add, &attributes_, inputs_, &operand_},
                    .inputs = {at(a * 64, 16), at(b * 64, 16)},
                    .output = at(sum * 64, 16),
                    .name = "sum"});
  }
  std::vector<bool> barriers() {
    const auto plan = plan_dispatches(ops_, {});
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    std::vector<bool> found;
    for (const Dispatch& dispatch : plan->dispatches) found.push_back(dispatch.needs_barrier);
    return found;
  }

  Attributes attributes_;
  Operand operand_ = Operand::contiguous(DType::F32, Shape{4});
  std::array<const Operand*, 2> inputs_{&operand_, &operand_};
  std::vector<ProgramOp> ops_;
};

TEST_F(DispatchBarriers, SiblingsRunAtOnceAndTheirReaderWaits) {
  add(0, 1, 2);
  add(0, 1, 3);
  add(0, 0, 4);
  add(2, 3, 5);
  add(4, 4, 6);
  EXPECT_EQ(barriers(), (std::vector{false, false, false, true, false})) << "the last one's input came before";
}

TEST_F(DispatchBarriers, ASlotThatIsUsedAgainWaits) {
  add(0, 1, 2);
  add(3, 4, 0);
  add(3, 4, 0);
  EXPECT_EQ(barriers(), (std::vector{false, true, true})) << "WAR, then WAW";
}

}  // namespace
}  // namespace shunt
