// Faults as text, and devices that show them.
#include "devices/faulty.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "devices/cpu/device.h"
#include "devices/one_add.h"

namespace shunt {
namespace {

TEST(FaultsInWords, AreThoseOfTheTable) {
  const Faults none;
  visit_faults(none, [](const char* key, std::string_view kind, std::string_view thing, const auto&) {
    for (const std::string& text :
         {fmt::format("x:0 {} at {} 7", kind, thing), fmt::format(" x:0  {} after 7 {}s , ", kind, thing)}) {
      const auto table = faults_from_text(text);
      ASSERT_TRUE(table.has_value()) << table.error().message;
      EXPECT_EQ(table->size(), 1U) << text << " is " << key;
      EXPECT_NE(table->find("x:0")->second, nullptr);
    }
  });
}

TEST(FaultsInWords, BelongToTheDevicesThatAreNamed) {
  const auto table = faults_from_text("cuda:0 lost at op 2, sim:1 oom after 1 allocation,cuda:0 error at transfer 0");
  ASSERT_TRUE(table.has_value()) << table.error().message;
  ASSERT_EQ(table->size(), 2U);
  FaultCount& cuda = *table->find("cuda:0")->second;
  EXPECT_EQ(cuda.transfer().error().code, Code::internal);
  EXPECT_TRUE(cuda.transfer().has_value());
  EXPECT_FALSE(cuda.ops(2).lost.has_value());
  EXPECT_EQ(cuda.ops(5).lost, 0U);
  EXPECT_FALSE(cuda.ops(5).lost.has_value());
  FaultCount& sim = *table->find("sim:1")->second;
  EXPECT_TRUE(sim.allocation().has_value());
  EXPECT_EQ(sim.allocation().error().code, Code::out_of_memory);
  EXPECT_EQ(sim.allocation().error().code, Code::out_of_memory);
  EXPECT_TRUE(faults_from_text("")->empty());
}

TEST(FaultsInWords, ThatNobodyKnowsAreRefused) {
  for (const char* text : {"cuda:0", "cuda:0 lost", "cuda:0 lost at op", "cuda:0 lost at op x", "cuda:0 lost at op -1",
                           "cuda:0 gone at op 3", "cuda:0 oom at op 3", "cuda:0 lost by op 3", "lost at op 3 now",
                           "cuda:0 lost at op 99999999999999999999"}) {
    const auto table = faults_from_text(text);
    ASSERT_FALSE(table.has_value()) << text;
    EXPECT_EQ(table.error().code, Code::invalid);
    EXPECT_NE(table.error().message.find(text), std::string::npos) << table.error().message;
    EXPECT_NE(table.error().message.find("\"oom at allocation N\""), std::string::npos) << table.error().message;
  }
}

// A faulty device over the scalar processor, which has no faults of its own.
class FaultyCpu : public testing::Test {
 protected:
  std::unique_ptr<Device> told(const Faults& faults) const {
    return make_faulty(cpu::make_cpu_device({.kernels = cpu::KernelSet::scalar, .engine = engine_}),
                       std::make_shared<FaultCount>("cpu:scalar", faults));
  }
  static Code code_of(const Status& status) { return status ? Code::unsupported : status.error().code; }

  std::shared_ptr<cpu::Engine> engine_ = std::make_shared<cpu::Engine>(1, std::span<const std::uint32_t>());
  const std::vector<float> right_ = {11, 22, 33, 44};
};

TEST_F(FaultyCpu, ComputesRightUntilItsOp) {
  const std::pair<Faults, Code> all[] = {{{.lost_at_op = 2}, Code::device_lost}, {{.error_at_op = 2}, Code::internal}};
  for (const auto& [faults, code] : all) {
    const auto device = told(faults);
    test::OneAdd add(*device);
    for (int run = 0; run < 2; ++run) {
      ASSERT_TRUE(add.run().has_value());
      EXPECT_EQ(add.result(), right_);
    }
    EXPECT_EQ(code_of(add.run()), code);
    const bool lives = code == Code::internal;
    EXPECT_EQ(device->health().status.has_value(), lives);
    EXPECT_EQ(code_of(add.run()), lives ? Code::unsupported : Code::device_lost);
    EXPECT_EQ(add.result(), lives ? right_ : std::vector<float>(4));
  }
}

TEST_F(FaultyCpu, ThatHangsEndsWithItsTimeOutAndSoDoesWhatComesAfter) {
  const auto device = told({.hangs_at_op = 1});
  test::OneAdd add(*device);
  ASSERT_TRUE(add.run().has_value());
  const auto begin = std::chrono::steady_clock::now();
  Event hung = add.start({.timeout = std::chrono::milliseconds(30)});
  std::array<float, 4> sums{};
  Event read = device->read(add.sum(), std::as_writable_bytes(std::span(sums)));
  EXPECT_FALSE(hung.poll());
  EXPECT_EQ(code_of(read.wait()), Code::timed_out);
  EXPECT_EQ(code_of(hung.wait()), Code::timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  EXPECT_EQ(code_of(device->health().status), Code::timed_out);
}

TEST_F(FaultyCpu, MakesNoNumbers) {
  const auto device = told({.nonfinite_at_op = 1});
  test::OneAdd add(*device);
  ASSERT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), right_);
  ASSERT_TRUE(add.run().has_value());
  for (const float sum : add.result()) EXPECT_TRUE(std::isnan(sum));
}

TEST_F(FaultyCpu, IsWrongFromItsOpOn) {
  const auto device = told({.wrong_at_op = 1});
  test::OneAdd add(*device);
  for (const float sign : {1.0F, -1.0F, -1.0F}) {
    ASSERT_TRUE(add.run().has_value());
    const std::vector<float> sums = add.result();
    for (std::size_t index = 0; index < sums.size(); ++index) EXPECT_EQ(sums[index], sign * right_[index]);
  }
}

TEST_F(FaultyCpu, FailsBeforeItComputes) {
  EXPECT_EQ(code_of(test::OneAdd(*told({.allocation_fails = 0})).status()), Code::out_of_memory);
  EXPECT_EQ(code_of(test::OneAdd(*told({.lost_at_program = 0})).status()), Code::device_lost);
  EXPECT_EQ(code_of(test::OneAdd(*told({.error_at_program = 0})).status()), Code::internal);
  EXPECT_EQ(code_of(test::OneAdd(*told({.lost_at_transfer = 1})).status()), Code::device_lost);
  EXPECT_EQ(code_of(test::OneAdd(*told({.error_at_transfer = 0})).status()), Code::internal);
}

TEST_F(FaultyCpu, CopiesFromAnother) {
  const auto from = told({});
  const auto to = told({.error_at_transfer = 2});
  test::OneAdd add(*from);
  ASSERT_TRUE(add.run().has_value());
  auto buffer = to->allocate(16, BufferUse::values);
  ASSERT_TRUE(buffer.has_value());
  const Binding target{buffer->get(), 0, 16};
  ASSERT_TRUE(to->copy_from_peer(*from, add.sum(), target).wait().has_value());
  std::vector<float> sums(4);
  ASSERT_TRUE(to->read(target, std::as_writable_bytes(std::span(sums))).wait().has_value());
  EXPECT_EQ(sums, right_);
  EXPECT_EQ(code_of(to->copy_from_peer(*from, add.sum(), target).wait()), Code::internal);
}

}  // namespace
}  // namespace shunt
