// Computations on devices that are slower or faster than their priors.
#include <gtest/gtest.h>

#include "run/graphs.h"
#include "run/pool/running_median.h"
#include "run/wrong_beliefs.h"
#include "shunt/computation.h"

namespace shunt {
namespace {

using test::chain_of_linears;
using test::kWeightRows;

constexpr std::uint32_t kProducts = 4;

class WrongBeliefsOfComputations : public test::WrongBeliefs {
 protected:
  void SetUp() override {
    for (std::uint32_t i = 0; i < kProducts; ++i)
      ASSERT_TRUE(weights_.add("w" + std::to_string(i), DType::F32, {kWeightRows, kWeightRows}, zeros_).has_value());
  }
  std::unique_ptr<Computation> create(const Runtime& runtime) {
    auto computation = Computation::create(chain_of_linears(kProducts), runtime, &weights_, {.margin = 0.05});
    EXPECT_TRUE(computation.has_value()) << computation.error().message;
    return *std::move(computation);
  }
  static bool is_on(const Computation& computation, std::string_view device) {
    const std::string text = computation.explain();
    std::size_t count = 0;
    for (std::size_t at = text.find(device); at != std::string::npos; at = text.find(device, at + 1)) ++count;
    return count == kProducts;
  }

  const std::vector<std::byte> zeros_ = std::vector<std::byte>(test::kWeightBytes);
  MemoryWeights weights_;
};

TEST_F(WrongBeliefsOfComputations, AreCorrectedByWhatReallyHappens) {
  const auto runtime = machine(100);
  const auto computation = create(*runtime);
  EXPECT_TRUE(is_on(*computation, " on gpu:0: ")) << computation->explain();
  std::size_t runs = 0;
  for (; notices_.empty() && runs < 1000; ++runs) ASSERT_TRUE(computation->run().has_value());
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("another plan should take"), std::string::npos) << notices_[0];
  EXPECT_GE(runs, RunningMedian::kEnough);
  for (std::size_t i = 0; i < runs; ++i) ASSERT_TRUE(computation->run().has_value());
  EXPECT_TRUE(is_on(*computation, " on cpu:0: ")) << computation->explain();
  EXPECT_EQ(notices_.size(), 1U);
}

TEST_F(WrongBeliefsOfComputations, ThatChangeNoPlanMoveNothing) {
  for (const double slower : {0.05, 0.2, 1.0, 3.0}) {
    const auto runtime = machine(slower);
    const auto computation = create(*runtime);
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(computation->run().has_value());
    EXPECT_TRUE(is_on(*computation, " on gpu:0: ")) << computation->explain();
    EXPECT_TRUE(notices_.empty()) << notices_.front();
  }
}

// A processor much faster than its prior, which goes unnoticed while the planner gives it nothing to do.
TEST_F(WrongBeliefsOfComputations, AreMeasuredOnceWhereSoMuchWorkIsDone) {
  const sim::Spec gpu{
      .id = "gpu:0", .rate = {.flops_per_s = 1e9, .bytes_per_s = 1e7}, .uncertainty = 0.9, .link = {.latency_us = 1}};
  const sim::Spec cpu{.id = "cpu:0",
                      .type = DeviceType::cpu,
                      .rate = {.flops_per_s = 1e10, .bytes_per_s = 1e8},
                      .believed = sim::Rate{.flops_per_s = 1e8, .bytes_per_s = 2e6},
                      .uncertainty = 0.9,
                      .memory_pool = "host"};
  for (const bool again : {false, true}) {
    notices_.clear();
    const auto runtime = machine({gpu, cpu}, true);
    const auto computation = create(*runtime);
    EXPECT_TRUE(is_on(*computation, again ? " on cpu:0: " : " on gpu:0: ")) << computation->explain();
    std::size_t runs = 0;
    for (; notices_.empty() && runs < 100; ++runs) ASSERT_TRUE(computation->run().has_value());
    ASSERT_EQ(notices_.empty(), again);
    if (again) continue;
    EXPECT_NE(notices_[0].find("measuring gpu:0, cpu:0 before a long run"), std::string::npos) << notices_[0];
    EXPECT_GE(runs, 15U);
    ASSERT_TRUE(computation->run().has_value());
    EXPECT_TRUE(is_on(*computation, " on cpu:0: ")) << computation->explain();
    EXPECT_EQ(notices_.size(), 1U) << notices_.back();
  }
}

}  // namespace
}  // namespace shunt
