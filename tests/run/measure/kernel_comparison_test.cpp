// Which of a device's kernels is fastest, on devices whose kernels take the times that they are told.
#include "run/measure/kernel_comparison.h"

#include <gtest/gtest.h>

#include "devices/two_kernels.h"
#include "run/measure/calibration.h"
#include "run/verify/conformance.h"

namespace shunt {
namespace {

using test::TimesOfKernels;
using test::TwoKernels;

std::unique_ptr<TwoKernels> device_with(TimesOfKernels times) {
  sim::Spec spec{.id = "sim:0",
                 .launch_us = 20,
                 .op_us = 3,
                 .rate = {.flops_per_s = 1e9, .bytes_per_s = 2e9},
                 .link = {.latency_us = 15, .bytes_per_s = 4e9}};
  spec.memory_bytes = std::uint64_t{64} << 20U;
  return std::make_unique<TwoKernels>(sim::make_sim_device(spec, std::make_shared<sim::VirtualClock>()), Op::linear, 2,
                                      times);
}

// Products of one row and of eight.
std::vector<BenchCase> product_cases() {
  constexpr OpSizes kSizes{.embedding = 32,
                           .feed_forward = 64,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 8,
                           .vocabulary = 64,
                           .page_tokens = 4,
                           .prompt = 8,
                           .context = 16};
  auto cases = bench_cases(Op::linear, kSizes);
  std::erase_if(*cases, [](const BenchCase& use) { return use.dtype != DType::F16; });
  return std::move(*cases);
}

// Calibrates a device, and returns which kernel it takes for eight rows.
struct Found {
  DeviceProfile profile;
  Support support;
};
Found found_on(TwoKernels& device, const CalibrationOptions& options = {.checks_all = false}) {
  const std::vector<BenchCase> cases = product_cases();
  auto profile = calibrate(device, cases, unmeasured(device.info()), options);
  EXPECT_TRUE(profile.has_value()) << profile.error().message;
  const BenchOperands operands(cases.back());
  const OpCall call = operands.call();
  return {.profile = std::move(*profile), .support = device.supports(std::span(&call, 1))};
}

double us_of_eight_rows(const DeviceProfile& profile) { return profile.ops.at("linear F32 F16 -> F32").back().us; }

TEST(KernelComparison, TheFasterOneIsChosenAndTimed) {
  const auto device = device_with({.plain_us = 100, .quick_us = 10});
  const Found found = found_on(*device);
  EXPECT_EQ(found.support.kernel.name, "quick");
  EXPECT_TRUE(found.support.kernel.is_measured);
  const auto by_rule = device_with({.plain_us = 100, .quick_us = 200});
  const Found plain = found_on(*by_rule);
  EXPECT_EQ(plain.support.kernel.name, "plain");
  EXPECT_TRUE(plain.support.kernel.is_measured);
  EXPECT_NEAR(us_of_eight_rows(plain.profile) - us_of_eight_rows(found.profile), 90, 1);
  ASSERT_EQ(found.profile.choices.size(), 1U);
  EXPECT_EQ(found.profile.choices.begin()->second.size(), 1U) << "there is one kernel for one row";
}

TEST(KernelComparison, WhatIsHardlyFasterIsNotChosen) {
  for (const double quick_us : {100.0, 98.0}) {
    const auto device = device_with({.plain_us = 100, .quick_us = quick_us});
    EXPECT_EQ(found_on(*device).support.kernel.name, "plain") << quick_us;
  }
}

TEST(KernelComparison, WhatIsWrongIsNotChosenAndDoesNotKeepTheOpFromBeingUsed) {
  const auto device = device_with({.plain_us = 100, .quick_us = 10, .quick_is_right = false});
  const Found found = found_on(*device);
  EXPECT_EQ(found.support.kernel.name, "plain");
  EXPECT_TRUE(found.profile.refused.empty());
  Device* const devices[] = {device.get()};
  const auto report =
      check_conformance(devices, {.ops = {Op::linear}, .dtypes = {DType::F32}, .sizes = {Sizes::awkward}});
  ASSERT_TRUE(report.has_value());
  ASSERT_FALSE(report->failures.empty()) << "it tries all kernels";
  EXPECT_NE(report->failures[0].words.find("by quick"), std::string::npos) << report->failures[0].words;
}

TEST(KernelComparison, WhatIsNotConfirmedIsNotChosen) {
  const auto device = device_with({.plain_us = 100, .quick_us = 10});
  std::string seen;
  const Found found = found_on(*device, {.checks_all = false, .confirm = [&](std::vector<KernelComparison> won) {
                                           for (KernelComparison& each : won) {
                                             seen += to_text(each);
                                             each.choice.kernel = each.by_rule();
                                           }
                                           return Result<std::vector<KernelComparison>>(std::move(won));
                                         }});
  EXPECT_EQ(found.support.kernel.name, "plain");
  EXPECT_TRUE(found.support.kernel.is_measured);
  EXPECT_TRUE(seen.starts_with("linear F32 F16 -> F32, 8 tokens: plain ")) << seen;
}

TEST(KernelComparison, IsNotMadeInAHurry) {
  const auto device = device_with({.plain_us = 100, .quick_us = 10});
  const Found found = found_on(*device, {.quick = true, .checks_all = false});
  EXPECT_TRUE(found.profile.choices.empty());
  EXPECT_EQ(found.support.kernel.name, "plain");
  EXPECT_FALSE(found.support.kernel.is_measured);
}

TEST(MeasuringInTurns, IsNotMisledByConditionsThatChange) {
  double slow = 1;
  int turns = 0;
  const std::function<Result<double>()> one = [&] {
    slow = ++turns < 6 ? 1 : 3;
    return Result<double>(1.0 * slow);
  };
  const std::function<Result<double>()> other = [&] { return Result<double>(0.9 * slow); };
  const std::array measures = {one, other};
  const auto found = measure_in_turns(measures, {.least = 11, .most = 11, .now_s = [] { return 0.0; }});
  ASSERT_TRUE(found.has_value());
  EXPECT_LT((*found)[1].median, (*found)[0].median);
}

TEST(MeasuringInTurns, LeavesOutWhatTakesFarLonger) {
  int runs = 0;
  const std::array<std::function<Result<double>()>, 2> measures = {[] { return Result<double>(1.0); },
                                                                   [&] { return Result<double>(2.5 + 0 * ++runs); }};
  const auto found = measure_in_turns(measures, {.least = 5, .most = 9, .now_s = [] { return 0.0; }});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ((*found)[0].count, 5U);
}

}  // namespace
}  // namespace shunt
