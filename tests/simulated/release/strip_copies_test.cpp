// Copies of weights to the simulated CUDA device that are laid out on the way.
#include "ops/strips.h"
#include "simulated/weight_copies.h"

namespace shunt::simulated {
namespace {

class StripCopies : public WeightCopies {
 protected:
  [[nodiscard]] std::vector<std::byte> in_strips() const {
    std::vector<std::byte> strips(content_.size());
    rows_to_strips(rows_.dtype, rows_.columns, content_, strips);
    return strips;
  }
};

TEST_F(StripCopies, ArriveLaidOut) {
  for (const DType dtype : {DType::F16, DType::Q8_0, DType::Q4_K, DType::Q6_K}) {
    SCOPED_TRACE(name_of(dtype));
    make(dtype, 48, 512);
    const auto pinned = pin(0, content_.size());
    ASSERT_TRUE(pinned.has_value()) << pinned.error().message;
    for (int step = 0; step < 2; ++step) {
      const Status arrived = copy(Layout::strips).wait();
      ASSERT_TRUE(arrived.has_value()) << arrived.error().message;
      EXPECT_EQ(came(), in_strips());
    }
    const Status as_rows = copy(Layout::rows).wait();
    ASSERT_TRUE(as_rows.has_value()) << as_rows.error().message;
    EXPECT_EQ(came(), content_);
  }
}

TEST_F(StripCopies, LongOnesArriveInPieces) {
  make(DType::F16, 2112, 4096);
  ASSERT_GT(content_.size(), device().weight_copy_bytes());
  ASSERT_TRUE(copy(Layout::strips).wait().has_value());
  EXPECT_EQ(came(), in_strips());
}

TEST_F(StripCopies, MemoryThatCannotBePinnedIsCopiedToo) {
  make(DType::Q8_0, 32, 256);
  Simulation::control().set_fault(Fault::cannot_register);
  EXPECT_FALSE(pin(0, content_.size()).has_value());
  ASSERT_TRUE(copy(Layout::strips).wait().has_value());
  EXPECT_EQ(came(), in_strips());
}

TEST_F(StripCopies, AKernelThatFailsOnTheWayLosesTheDevice) {
  make(DType::Q8_0, 32, 256);
  Simulation::control().set_fault(Fault::illegal_address);
  const Status arrived = copy(Layout::strips).wait();
  ASSERT_FALSE(arrived.has_value());
  EXPECT_EQ(arrived.error().code, Code::device_lost);
  EXPECT_FALSE(device().health().status.has_value());
  EXPECT_FALSE(copy(Layout::rows).wait().has_value());
}

TEST_F(StripCopies, WithoutMemoryForThemTheDeviceStaysAsItWas) {
  make(DType::Q8_0, 32, 256);
  Simulation::control().set_fault(Fault::out_of_memory);
  EXPECT_EQ(copy(Layout::strips).wait().error().code, Code::out_of_memory);
  Simulation::control().set_fault(Fault::none);
  ASSERT_TRUE(copy(Layout::strips).wait().has_value());
  EXPECT_EQ(came(), in_strips());
}

}  // namespace
}  // namespace shunt::simulated
