// Copies between two simulated CUDA devices.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

constexpr std::size_t kBytes = 100'000;

class Peers : public testing::Test {
 protected:
  void SetUp() override {
    report_ = Simulation::open("cuda");
    ASSERT_EQ(report_.devices.size(), 2U) << report_.absent_because;
    for (const auto& device : report_.devices) buffers_.push_back(*device->allocate(kBytes, BufferUse::values));
    std::iota(sent_.begin(), sent_.end(), std::uint8_t{1});
  }
  void TearDown() override {
    buffers_.clear();
    report_ = {};
    EXPECT_EQ(Simulation::control().live_objects(), before_);
  }

  [[nodiscard]] Device& device(std::size_t number) const { return *report_.devices[number]; }
  [[nodiscard]] Event copy(std::size_t from, std::size_t to, std::uint64_t offset) {
    return device(to).copy_from_peer(device(from), {buffers_[from].get(), offset, kBytes - offset},
                                     {buffers_[to].get(), offset, kBytes - offset});
  }

  const Variable gpus_{"SHUNT_SIMULATED_GPUS", "2"};
  const Simulation simulation_;
  const std::uint64_t before_ = Simulation::control().live_objects();
  BackendReport report_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::uint8_t> sent_ = std::vector<std::uint8_t>(kBytes);
};

TEST_F(Peers, CopyFromEachOtherDirectly) {
  EXPECT_TRUE(device(0).info().links_to_peers && device(1).info().links_to_peers);
  ASSERT_TRUE(device(0).write({buffers_[0].get(), 0, kBytes}, std::as_bytes(std::span(sent_))).wait().has_value());
  ASSERT_TRUE(copy(0, 1, 0).wait().has_value());
  constexpr std::uint64_t kOffset = 500;
  ASSERT_TRUE(device(0).write({buffers_[0].get(), 0, kBytes}, std::vector<std::byte>(kBytes)).wait().has_value());
  ASSERT_TRUE(copy(1, 0, kOffset).wait().has_value());
  std::vector<std::uint8_t> came(kBytes);
  ASSERT_TRUE(
      device(0).read({buffers_[0].get(), 0, kBytes}, std::as_writable_bytes(std::span(came))).wait().has_value());
  std::fill_n(sent_.begin(), kOffset, std::uint8_t{0});
  EXPECT_EQ(came, sent_);
  EXPECT_FALSE(device(0).advance() || device(1).advance()) << "nothing is left to do";
}

TEST_F(Peers, AreLeftAsTheyAreIfTheDriverSharesNoMemory) {
  Simulation::control().set_fault(Fault::cannot_share);
  const Status copied = copy(0, 1, 0).wait();
  ASSERT_FALSE(copied.has_value());
  EXPECT_EQ(copied.error().code, Code::unsupported) << "so it is copied through the host";
  Simulation::control().set_fault(Fault::none);
  EXPECT_TRUE(copy(0, 1, 0).wait().has_value());
}

TEST(OnePeer, HasNoLink) {
  const Simulation simulation;
  const BackendReport report = Simulation::open("cuda");
  ASSERT_EQ(report.devices.size(), 1U) << report.absent_because;
  EXPECT_FALSE(report.devices[0]->info().links_to_peers);
}

}  // namespace
}  // namespace shunt::simulated
