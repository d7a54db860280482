// Devices that fail, hang or run out of memory in the middle of an array function.
#include <gtest/gtest.h>

#include "arrays/machine.h"
#include "run/pool/backoff.h"

namespace shunt {
namespace {

constexpr std::size_t kSize = 20000;
constexpr std::chrono::hours kHour{1};

// Returns what the CPU alone computes.
Floats right(const ArrayCase& example) {
  const ArraysMachine machine({});
  Floats out(example.results());
  const auto run = example.run(*machine.arrays(), example.a(), example.b(), out, {.devices = "cpu:simd"});
  EXPECT_TRUE(run.has_value());
  return out;
}

TEST(ArrayFailures, FallAlongTheChainInEveryFunction) {
  const Faults all_faults[] = {{.allocation_fails = 0}, {.lost_at_op = 0},  {.lost_at_op = 1},
                               {.hangs_at_op = 0},      {.error_at_op = 0}, {.nonfinite_at_op = 0}};
  for (const ArrayCase& example : one_of_each(kSize)) {
    const Floats wanted = right(example);
    for (const Faults& faults : all_faults) {
      // Sums take two ops, of rows and of the rest; everything else takes one.
      if (faults.lost_at_op == 1 && example.results() != 1) continue;
      SCOPED_TRACE(example.function + std::to_string(&faults - all_faults));
      const ArraysMachine machine({near_spec("sim:0", faults), near_spec("sim:1", faults)});
      const auto arrays = machine.arrays();
      Floats out(example.results(), -7);
      const auto run = example.run(*arrays, example.a(), example.b(), out);
      ASSERT_TRUE(run.has_value()) << run.error().message;
      EXPECT_EQ(run->device, "cpu:simd");
      EXPECT_EQ(run->reason, ArrayReason::fallback);
      EXPECT_TRUE(run->failures.starts_with("sim:0: ")) << run->failures;
      EXPECT_NE(run->failures.find("; sim:1: "), std::string::npos) << run->failures;
      EXPECT_EQ(out, wanted);
      EXPECT_NE(arrays->explain().find("set aside: "), std::string::npos) << arrays->explain();
      const auto next = example.run(*arrays, example.a(), example.b(), out);
      ASSERT_TRUE(next.has_value());
      EXPECT_EQ(next->device, "cpu:simd");
      EXPECT_EQ(next->failures, "") << "they are not asked again";
    }
  }
}

TEST(ArrayFailures, OfANamedDeviceAreErrorsAndLeaveEverythingAsItWas) {
  const std::pair<Faults, Code> faults[] = {{{.allocation_fails = 0}, Code::out_of_memory},
                                            {{.lost_at_op = 0}, Code::device_lost},
                                            {{.hangs_at_op = 0}, Code::timed_out},
                                            {{.error_at_op = 0}, Code::internal},
                                            {{.nonfinite_at_op = 0}, Code::internal}};
  for (const ArrayCase& example : one_of_each(kSize))
    for (const auto& [fault, code] : faults) {
      const ArraysMachine machine({near_spec("sim:0", fault)});
      const auto arrays = machine.arrays();
      Floats out(example.results(), -7);
      for (int again = 0; again < 2; ++again) {
        const auto run = example.run(*arrays, example.a(), example.b(), out,
                                     {.devices = "sim:0", .timeout = std::chrono::seconds(5)});
        ASSERT_FALSE(run.has_value());
        EXPECT_EQ(run.error().code, code) << run.error().message;
        EXPECT_NE(run.error().message.find("sim:0"), std::string::npos) << run.error().message;
        EXPECT_NE(run.error().message.find(example.function), std::string::npos) << run.error().message;
      }
      EXPECT_EQ(out, Floats(example.results(), -7));
    }
}

TEST(ArrayFailures, GoOnBehindTheDeviceAndThenBeforeIt) {
  const ArraysMachine machine({near_spec("sim:0"), near_spec("sim:1", {.lost_at_op = 0})});
  const auto arrays = machine.arrays();
  const Floats x(kSize, 1);
  Floats out(kSize);
  EXPECT_EQ(arrays->add(x, x, out, {.devices = "sim:1,cpu:scalar,sim:0"})->device, "cpu:scalar")
      << "a chain of the call's own";
  const ArraysMachine other({near_spec("sim:0"), near_spec("sim:1", {.lost_at_op = 0})}, false);
  const auto others = other.arrays();
  ASSERT_TRUE(others->add(x, x, out, {.devices = "sim:0"}).has_value());
  const auto run = others->add(x, x, out, {.devices = "sim:1,sim:0"});
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_EQ(run->device, "sim:0");
}

TEST(ArrayFailures, ADeviceThatLacksTheFunctionIsNoCandidate) {
  sim::Spec spec = near_spec();
  spec.lacks = {Op::reduce_sum};
  const ArraysMachine machine({spec});
  const auto arrays = machine.arrays();
  const Floats x(kSize, 1);
  float total = 0;
  const auto run = arrays->sum(x, total);
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_EQ(run->device, "cpu:simd");
  EXPECT_EQ(run->failures, "");
  EXPECT_EQ(total, kSize);
  EXPECT_EQ(arrays->dot(x, x, total)->device, "sim:0");
  const auto named = arrays->sum(x, total, {.devices = "sim:0"});
  ASSERT_FALSE(named.has_value());
  EXPECT_EQ(named.error().code, Code::unsupported);
  EXPECT_NE(named.error().message.find("lacks it by its description"), std::string::npos) << named.error().message;
}

TEST(ArrayFailures, ADeviceThatLivesIsTriedAgainAfterAWhile) {
  const ArraysMachine machine({near_spec("sim:0", {.error_at_op = 0})});
  const auto arrays = machine.arrays();
  const Floats x(kSize, 1);
  Floats out(kSize);
  const ArrayCall named{.devices = "sim:0"};
  for (std::uint64_t call = 0; call <= Backoff::kCalls; ++call)
    EXPECT_EQ(arrays->add(x, x, out, named).error().code, Code::internal) << call;
  EXPECT_TRUE(arrays->add(x, x, out, named).has_value());
  EXPECT_EQ(out, Floats(kSize, 2));
}

TEST(ArrayFailures, ADeviceThatIsLostIsOpenedAgainAfterAWhile) {
  for (const bool is_tiny : {false, true}) {
    const ArraysMachine machine({near_spec("sim:0", {.lost_at_op = 0})});
    const auto arrays = machine.arrays();
    const Floats x(is_tiny ? 16 : kSize, 1);
    Floats out(x.size());
    const ArrayCall named{.devices = "sim:0"};
    for (std::uint64_t call = 0; call <= Backoff::kCalls; ++call)
      EXPECT_EQ(arrays->add(x, x, out, named).error().code, Code::device_lost) << call;
    for (int again = 0; again < 3; ++again) {
      const auto run = arrays->add(x, x, out, named);
      ASSERT_TRUE(run.has_value()) << run.error().message;
      EXPECT_EQ(run->device, "sim:0");
    }
    EXPECT_EQ(out, Floats(x.size(), 2));
    EXPECT_EQ(arrays->explain().find("set aside"), std::string::npos) << arrays->explain();
    EXPECT_EQ(machine.arrays()->add(x, x, out, named)->device, "sim:0") << "others use what was opened";
  }
}

TEST(ArrayFailures, EachOneKeepsADeviceAwayForTwiceAsLong) {
  Backoff backoff;
  EXPECT_FALSE(backoff.holds(1));
  backoff.add({Code::internal, "first"}, 1);
  EXPECT_TRUE(backoff.holds(1 + Backoff::kCalls));
  EXPECT_FALSE(backoff.holds(2 + Backoff::kCalls));
  backoff.add({Code::internal, "second"}, 100);
  EXPECT_EQ(backoff.why().message, "second");
  EXPECT_TRUE(backoff.holds(100 + 2 * Backoff::kCalls));
  EXPECT_FALSE(backoff.holds(101 + 2 * Backoff::kCalls));
  backoff.end();
  EXPECT_FALSE(backoff.holds(101));
}

TEST(ArrayFailures, ADeviceThatHangsLeavesHalfOfTheTimeToTheNext) {
  sim::Spec spec = near_spec("sim:0", {.hangs_at_op = 0});
  spec.watchdog_us = 1e12;
  const ArraysMachine machine({spec});
  const auto arrays = machine.arrays();
  const Floats x(kSize, 1);
  Floats out(kSize);
  const auto run = arrays->add(x, x, out, {.timeout = kHour});
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_EQ(run->device, "cpu:simd");
  EXPECT_NE(run->failures.find("did not end in the"), std::string::npos) << run->failures;
  EXPECT_EQ(out, Floats(kSize, 2));
  EXPECT_GT(machine.clock->now(), std::chrono::minutes(29));
  EXPECT_LT(machine.clock->now(), std::chrono::minutes(31));
}

TEST(ArrayFailures, ACallThatTakesLongerThanItMayTimesOut) {
  const ArraysMachine machine({});
  std::chrono::seconds now{0};
  // Each reading of this clock advances it by a second.
  const auto arrays = machine.arrays({.now = [&now] { return now += std::chrono::seconds(1); }});
  for (const ArrayCase& example : one_of_each(kSize)) {
    Floats out(example.results(), -7);
    auto run = example.run(*arrays, example.a(), example.b(), out, {.timeout = std::chrono::seconds(2)});
    ASSERT_FALSE(run.has_value());
    EXPECT_EQ(run.error().code, Code::timed_out);
    EXPECT_NE(run.error().message.find("2e+06 us"), std::string::npos) << run.error().message;
    EXPECT_EQ(out, Floats(example.results(), -7));
    run = example.run(*arrays, example.a(), example.b(), out, {.timeout = kHour});
    ASSERT_TRUE(run.has_value()) << "the CPU is not set aside for it: " << run.error().message;
    example.expect_right(out, example.expected(example.a(), example.b()));
  }
}

TEST(ArrayFailures, WhatIsPredictedToTakeTooLongIsNotBegun) {
  sim::Spec slow = near_spec("sim:0");
  slow.launch_us = 3e6;
  const ArraysMachine machine({slow, near_spec("sim:1", {.lost_at_op = 0})}, false);
  const auto arrays = machine.arrays();
  const Floats x(kSize, 1);
  Floats out(kSize);
  EXPECT_EQ(arrays->add(x, x, out)->device, "sim:0") << "the other is lost";
  const auto run = arrays->add(x, x, out, {.devices = "sim:0", .timeout = std::chrono::seconds(1)});
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().code, Code::timed_out);
}

}  // namespace
}  // namespace shunt
