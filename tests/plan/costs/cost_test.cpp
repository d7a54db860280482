// Stored measurements, and the predictions made from them.
#include "plan/costs/cost.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "plan/costs/profile.h"
#include "plan/timeline.h"

namespace shunt {
namespace {

DeviceInfo processor() {
  DeviceInfo info;
  info.id = "cpu:simd";
  info.name = "A processor";
  info.driver = "none";
  info.type = DeviceType::cpu;
  info.compute_units = 4;
  info.memory_pool = kHostPool;
  return info;
}

Profile some_profile() {
  DeviceProfile device = unmeasured(processor());
  device.launch_us = 3;
  device.wake_us = 40;
  device.op_us = 0.5;
  device.few_tokens_ratio = 0.75;
  device.checked_s = 1e9;
  device.to_device = {.us = 10, .bytes_per_s = 5e9, .spread = 0.1};
  device.ops["add F32 F32 -> F32"] = {{.cost = {1000, 8000, 4000}, .us = 2.5, .spread = 0.01}};
  device.choices["add F32 F32 -> F32"] = {{.cost = {1000, 8000, 4000}, .kernel = "add_quick"}};
  device.refused["silu"] = "it was \"wrong\"";
  return {.devices = {device}};
}

struct ProfileFile : testing::Test {
  // Unique per process: other tests of this program may run at the same time.
  const std::filesystem::path path = testing::TempDir() + "calibration_" + std::to_string(getpid()) + ".json";
  const std::filesystem::path aside = path.string() + ".broken";
  ProfileFile() { clear(); }
  ~ProfileFile() override { clear(); }
  void clear() const {
    std::filesystem::remove(path);
    std::filesystem::remove(aside);
  }
  void write(const std::string& text) const { std::ofstream(path) << text; }
};

TEST_F(ProfileFile, IsReadAsItWasWritten) {
  std::string warning;
  const auto none = load_profile(path, warning);
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->devices.empty());
  ASSERT_TRUE(save_profile(some_profile(), path).has_value());
  const auto loaded = load_profile(path, warning);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(warning, "");
  EXPECT_EQ(to_json(*loaded), to_json(some_profile()));
  ASSERT_NE(loaded->find(processor()), nullptr);
  EXPECT_EQ(loaded->find(processor())->ops.at("add F32 F32 -> F32")[0].us, 2.5);
  const KernelChoice& choice = loaded->find(processor())->choices.at("add F32 F32 -> F32")[0];
  EXPECT_EQ(choice.kernel, "add_quick");
  EXPECT_EQ(choice.cost.bytes_written, 4000);
}

TEST_F(ProfileFile, OfADeviceWhoseNameIsNoUtf8IsWrittenAndReadAgain) {
  Profile profile = some_profile();
  profile.devices[0].name = "\xFF accelerator";
  std::string warning;
  ASSERT_TRUE(save_profile(profile, path).has_value());
  const auto loaded = load_profile(path, warning);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(warning, "");
  ASSERT_EQ(loaded->devices.size(), 1U);
  EXPECT_EQ(loaded->devices[0].name, "\xEF\xBF\xBD accelerator");
}

TEST_F(ProfileFile, WithoutChoicesOfKernelsIsRead) {
  Profile profile = some_profile();
  profile.devices[0].choices.clear();
  std::string text = to_json(profile);
  const std::string_view none = "\"choices\": {},";
  ASSERT_NE(text.find(none), std::string::npos);
  text.erase(text.find(none), none.size());
  write(text);
  std::string warning;
  const auto loaded = load_profile(path, warning);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(warning, "");
  EXPECT_EQ(to_json(*loaded), to_json(profile));
}

// Its steps ran with other numerics than its ops; on processors both have the same kernels.
TEST_F(ProfileFile, OfTheFirstFormatKeepsAllButTheStepsOfOtherDevices) {
  Profile profile = some_profile();
  profile.devices.push_back(profile.devices[0]);
  profile.devices[1].id = "cuda:0";
  profile.devices[1].threads = 0;
  profile.devices[1].ops.clear();  // of other kernels
  std::string text = to_json(profile);
  text.replace(text.find("calibration 2"), 13, "calibration 1");
  write(text);
  std::string warning;
  const auto loaded = load_profile(path, warning);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(warning, "");
  ASSERT_EQ(loaded->devices.size(), 2U);
  EXPECT_EQ(to_json({.devices = {loaded->devices[0]}}), to_json(some_profile()));
  EXPECT_EQ(loaded->devices[1].few_tokens_ratio, 1);
  EXPECT_EQ(loaded->devices[1].checked_s, 0) << "it is to be checked";
  EXPECT_EQ(loaded->devices[1].launch_us, 3);
}

TEST_F(ProfileFile, ThatIsBrokenIsSetAside) {
  const std::string good = to_json(some_profile());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& text :
       {std::string(), std::string("{"), good.substr(0, good.size() / 2), with("calibration 2", "calibration 0"),
        with("\"launch_us\"", "\"lunch_us\""), with("\"kernel\"", "\"colonel\""), with("\"us\": 2.5", "\"us\": -2.5"),
        with("\"us\": 2.5", "\"us\": 0"), with("\"us\": 2.5", "\"us\": \"2.5\""), with("\"us\": 2.5", "\"us\": 1e999"),
        with("\"flops\": 1000.0", "\"flops\": -1"), with("\"few_tokens_ratio\": 0.75", "\"few_tokens_ratio\": 0")}) {
    write(text);
    std::string warning;
    const auto loaded = load_profile(path, warning);
    ASSERT_TRUE(loaded.has_value());
    EXPECT_TRUE(loaded->devices.empty());
    EXPECT_NE(warning.find("shunt calibrate"), std::string::npos) << text;
    EXPECT_FALSE(std::filesystem::exists(path)) << text;
    EXPECT_TRUE(std::filesystem::exists(aside)) << text;
  }
}

TEST(Profile, HoldsForTheSameDeviceDriverAndThreadsOnly) {
  const Profile profile = some_profile();
  EXPECT_NE(profile.find(processor()), nullptr);
  const auto finds = [&](auto&& change) {
    DeviceInfo info = processor();
    change(info);
    return profile.find(info) != nullptr;
  };
  EXPECT_FALSE(finds([](DeviceInfo& info) { info.id = "cpu:scalar"; }));
  EXPECT_FALSE(finds([](DeviceInfo& info) { info.name = "Another"; }));
  EXPECT_FALSE(finds([](DeviceInfo& info) { info.driver = "newer"; }));
  EXPECT_FALSE(finds([](DeviceInfo& info) { info.compute_units = 5; }));
  Profile twice = profile;
  twice.set(profile.devices[0]);
  EXPECT_EQ(twice.devices.size(), 1U);
}

TEST(Profile, KeepsOnlyOpsWhoseKernelsAreStillTheSame) {
  Profile profile = some_profile();
  DeviceProfile& device = profile.devices[0];
  device.ops["linear F32 F32 -> F32"] = {{.cost = {1000, 8000, 4000}, .us = 2.5, .spread = 0.01}};
  device.ops["removed F32 -> F32"] = device.ops["linear F32 F32 -> F32"];
  device.refused["linear"] = "it was wrong";
  device.choices["linear F32 F32 -> F32"] = {{.cost = {1000, 8000, 4000}, .kernel = "linear_row"}};
  ASSERT_TRUE(device.kernels.contains("elementwise"));
  device.kernels["elementwise"] += '!';
  const auto read = profile_from_json(to_json(profile));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const DeviceProfile* const kept = read->find(processor());
  ASSERT_NE(kept, nullptr) << "launches and links are the device's, whatever its kernels";
  EXPECT_EQ(kept->launch_us, 3);
  EXPECT_EQ(kept->ops.size(), 1U);
  EXPECT_TRUE(kept->ops.contains("linear F32 F32 -> F32"));
  EXPECT_EQ(kept->refused.size(), 1U);
  EXPECT_EQ(kept->choices.size(), 1U);
  EXPECT_TRUE(kept->choices.contains("linear F32 F32 -> F32"));
  EXPECT_EQ(kept->few_tokens_ratio, 1) << "whole steps ran with other kernels";
  EXPECT_EQ(kept->kernels, unmeasured(processor()).kernels);
}

Cost linear(double m, double k, double n) { return {2 * m * k * n, m * k + 4 * k * n, 4 * m * n}; }

// The true times of a device that its caches, tiles and launches make unlike a roofline.
double true_us(const Cost& cost) {
  const double bytes = cost.bytes_read + cost.bytes_written;
  const double cached = bytes < 1e6 ? 3e10 : 1e10;
  return 2 + 1e6 * std::hypot(cost.flops / 1e11, bytes / cached) * (1 + 0.2 * std::sin(std::log(cost.flops)));
}

TEST(TimeCurve, PredictsMeasuredShapesAsMeasuredAndOthersAsTheNearest) {
  std::vector<MeasuredOp> points;
  for (const double size : {256, 1024, 4096})
    for (const double n : {1, 8, 64, 512}) {
      const Cost cost = linear(size, size, n);
      points.push_back({.cost = cost, .us = true_us(cost), .spread = 0.01});
    }
  const TimeCurve curve(points, 1);
  for (const MeasuredOp& point : points) {
    const Prediction prediction = curve.predict(point.cost);
    EXPECT_NEAR(prediction.us, point.us, 0.03 * point.us);
    EXPECT_LT(prediction.uncertainty_us, 0.03 * point.us);
  }
  for (const double size : {512, 2000})
    for (const double n : {3, 20, 200}) {
      const Cost cost = linear(size, size, n);
      const Prediction prediction = curve.predict(cost);
      EXPECT_NEAR(prediction.us, true_us(cost), 0.35 * true_us(cost)) << size << " " << n;
      EXPECT_LT(std::abs(prediction.us - true_us(cost)), 2 * prediction.uncertainty_us);
    }
}

TEST(TimeCurve, FarFromAllMeasurementsIsARooflineAndUncertain) {
  const std::vector<MeasuredOp> points = {{.cost = linear(256, 256, 1), .us = 30, .spread = 0.01}};
  const TimeCurve curve(points, 1);
  const Prediction far = curve.predict(linear(65536, 65536, 1));
  const double roofline = 1 + 29 * (65536.0 / 256) * (65536.0 / 256);  // as many flops, fewer bytes
  EXPECT_NEAR(far.us, roofline, 0.01 * roofline);
  EXPECT_GT(far.uncertainty_us, 0.6 * far.us);
}

TEST(TimeCurve, OnePoisonedMeasurementOfManyChangesItsSurroundingsOnly) {
  std::vector<MeasuredOp> points;
  for (const double size : {256, 1024, 4096})
    for (const double n : {1, 8, 64, 512}) {
      const Cost cost = linear(size, size, n);
      points.push_back({.cost = cost, .us = 1 + cost.flops / 1e5 + cost.bytes_read / 1e4, .spread = 0.01});
    }
  const TimeCurve sound(points, 1);
  points[0].us *= 50;
  const TimeCurve poisoned(points, 1);
  const Cost far = linear(4000, 4000, 300);
  EXPECT_NEAR(poisoned.predict(far).us, sound.predict(far).us, 0.05 * sound.predict(far).us);
}

TEST(DeviceCost, IsToBeCheckedOnceItIsOldOrDoubted) {
  constexpr double kDay = 86400;
  const auto is_due = [](double checked_s, double age_s, auto&& change) {
    DeviceProfile profile = some_profile().devices[0];
    profile.checked_s = checked_s;
    change(profile);
    return DeviceCost(processor(), &profile).is_due(checked_s + age_s);
  };
  const auto nothing = [](DeviceProfile&) {};
  EXPECT_FALSE(is_due(1e9, 6 * kDay, nothing));
  EXPECT_TRUE(is_due(1e9, 8 * kDay, nothing));
  EXPECT_TRUE(is_due(1e9, -kDay, nothing)) << "a clock that was set back";
  EXPECT_TRUE(is_due(0, 1, nothing)) << "runs have contradicted it";
  EXPECT_TRUE(is_due(1e9, 1, [](DeviceProfile& profile) { profile.few_tokens_ratio = 750; }));
  EXPECT_FALSE(DeviceCost(processor(), nullptr).is_due(1e9)) << "nothing was measured";
}

TEST(DeviceCost, CopiesOfALinkThatGoesOneWayAtATimeWaitForEachOther) {
  DeviceInfo info = processor();
  info.memory_pool = "gpu";
  DeviceProfile profile = unmeasured(info);
  profile.to_device = profile.from_device = {.us = 10, .bytes_per_s = 1e9};
  const auto ends = [&](double both_ways_bytes_per_s) {
    profile.both_ways = {.us = 10, .bytes_per_s = both_ways_bytes_per_s};
    const DeviceCost cost(info, &profile);
    const Lane lanes[] = {{.pool = 1,
                           .to_host = cost.from_device(),
                           .from_host = cost.to_device(),
                           .one_way_at_a_time = cost.one_way_at_a_time()}};
    Timeline timeline(lanes);
    timeline.to_host(0, 1'000'000, 0);
    return timeline.from_host(0, 1'000'000, 0).end_us;
  };
  EXPECT_NEAR(ends(1e9), 1010, 1e-6);
  EXPECT_NEAR(ends(0.5e9), 2020, 1e-6);
}

// Both read the host's memory.
TEST(Timeline, TheProcessorAndWeightsOnTheirWaySlowEachOtherDown) {
  DeviceInfo info = processor();
  info.memory_pool = "gpu";
  DeviceProfile profile = unmeasured(info);
  profile.weights = {.us = 0, .bytes_per_s = 1e9};
  profile.reads_beside_weights = 0.8;
  profile.weights_beside_reads = 0.5;
  const DeviceCost cost(info, &profile);
  const Lane lanes[] = {{.pool = 0, .resource = 0},
                        {.pool = 1,
                         .resource = 1,
                         .to_host = {.us = 1, .bytes_per_s = 1e9},
                         .weights_from_host = cost.weights_to_device(),
                         .reads_beside_weights = cost.reads_beside_weights(),
                         .weights_beside_reads = cost.weights_beside_reads()}};
  Timeline timeline(lanes);
  EXPECT_EQ(timeline.from_host(1, 1'000'000, 0, Copied::weight).end_us, 1000);
  EXPECT_EQ(timeline.compute(1, 0, 100).end_us, 100) << "the GPU reads its own memory";
  EXPECT_NEAR(timeline.compute(0, 0, 400).end_us, 500, 1e-9) << "weights travel all the time";
  EXPECT_NEAR(timeline.from_host(1, 1'000'000, 0, Copied::weight).end_us, 2250, 1e-9) << "250 us later";
  EXPECT_NEAR(timeline.compute(0, 500, 4000).end_us, 500 + 4000 + 0.2 * 3500, 1e-9) << "until they have arrived";
  EXPECT_NEAR(timeline.compute(0, 6000, 100).end_us, 6100, 1e-9) << "later nothing travels";
}

// Threads that spun for a while have gone to sleep.
TEST(Timeline, WhatComesAfterAPauseWakesItsDevice) {
  const Lane lanes[] = {{.pool = 0, .resource = 0, .launch_us = 2, .wake_us = 40}};
  Timeline timeline(lanes);
  EXPECT_EQ(timeline.compute(0, 0, 10).end_us, 12) << "a plan begins with a device that is awake";
  EXPECT_EQ(timeline.compute(0, 30, 10).end_us, 42) << "a short pause";
  EXPECT_EQ(timeline.compute(0, 142, 10).end_us, 194) << "a long one";
}

TEST(DeviceCost, OfADeviceThatDeclinesToCopyKeepsWhatIsBelievedOfItsLaunches) {
  DeviceInfo info = processor();
  info.prior.launch_us = 7;
  const DeviceProfile profile = unmeasured(info);
  EXPECT_EQ(DeviceCost(info, &profile).launch_us(), 7);
}

// A device busy with a model does not pay for each op the delays it pays for a single one.
TEST(DeviceCost, IsThatOfOpsInWholeStepsOfFewOrManyTokens) {
  DeviceInfo info = processor();
  info.prior = {.launch_us = 1, .op_us = 1, .flops_per_s = 1e6, .bytes_per_s = 1e6};
  DeviceProfile profile = unmeasured(info);
  const DeviceCost alone(info, &profile);
  profile.few_tokens_ratio = 0.5;
  profile.many_tokens_ratio = 2;
  const DeviceCost in_steps(info, &profile);
  const Attributes none;
  const auto expect_ratio = [&](const OpCall& call, double ratio) {
    EXPECT_DOUBLE_EQ(in_steps.compute(call).us, ratio * alone.compute(call).us);
    EXPECT_DOUBLE_EQ(in_steps.compute(call).uncertainty_us, ratio * alone.compute(call).uncertainty_us);
  };
  const Operand cache = Operand::contiguous(DType::F32, {4, 16, 2, 32}, TensorKind::state);
  for (const std::uint32_t tokens : {1U, 8U, 9U, 512U}) {
    const double ratio = tokens <= 8 ? 0.5 : 2;
    const Operand x = Operand::contiguous(DType::F32, {tokens, 2, 32}, TensorKind::value, Extent::tokens);
    const Operand numbers = Operand::contiguous(DType::I32, {tokens}, TensorKind::input, Extent::tokens);
    const Operand pages = Operand::contiguous(DType::I32, {1, 4}, TensorKind::input);
    const Operand* const inputs[] = {&x};
    expect_ratio({.op = Op::silu, .attributes = &none, .inputs = inputs, .output = &x}, ratio);
    const Operand* const written[] = {&cache, &x, &numbers, &numbers, &pages};
    expect_ratio({.op = Op::cache_write, .attributes = &none, .inputs = written, .output = &cache}, ratio);
    const Operand rows = Operand::contiguous(DType::F32, {tokens, 64});
    const Operand* const others[] = {&rows};
    expect_ratio({.op = Op::silu, .attributes = &none, .inputs = others, .output = &rows}, 1);
  }
}

TEST(DeviceCost, OfOtherDtypesIsThatOfTheSameOp) {
  const Operand x = Operand::contiguous(DType::F32, {4, 64});
  const Operand weight = Operand::contiguous(DType::Q4_0, {32, 64}, TensorKind::weight);
  const Operand y = Operand::contiguous(DType::F32, {4, 32});
  const Operand* const inputs[] = {&x, &weight};
  const Attributes none;
  const OpCall call{.op = Op::linear, .attributes = &none, .inputs = inputs, .output = &y};
  EXPECT_EQ(kind_of(call, Arithmetic::f32), "linear F32 Q4_0 -> F32");
  DeviceInfo info = processor();
  info.prior = {.launch_us = 1, .op_us = 1, .flops_per_s = 1e6, .bytes_per_s = 1e6};
  DeviceProfile profile = unmeasured(info);
  profile.ops["linear F32 Q8_0 -> F32"] = {{.cost = info_of(Op::linear).rule->cost(call), .us = 7, .spread = 0.01}};
  profile.ops["silu F32 -> F32"] = {{.cost = {10, 10, 10}, .us = 500, .spread = 0.01}};
  const Prediction prediction = DeviceCost(info, &profile).compute(call);
  EXPECT_NEAR(prediction.us, 7, 0.2);
  EXPECT_GE(prediction.uncertainty_us, 3);
}

TEST(DeviceCost, OfAnotherArithmeticIsAGuess) {
  const Operand x = Operand::contiguous(DType::F32, {4, 64});
  const Operand weight = Operand::contiguous(DType::Q4_0, {32, 64}, TensorKind::weight);
  const Operand y = Operand::contiguous(DType::F32, {4, 32});
  const Operand* const inputs[] = {&x, &weight};
  const Attributes none;
  const OpCall call{.op = Op::linear, .attributes = &none, .inputs = inputs, .output = &y};
  EXPECT_EQ(kind_of(call, Arithmetic::halves), "linear F32 Q4_0 -> F32 in halves");
  EXPECT_EQ(arithmetic_of("linear F32 Q4_0 -> F32 in halves"), Arithmetic::halves);
  EXPECT_EQ(arithmetic_of("linear F32 Q4_0 -> F32"), Arithmetic::f32);
  const DeviceInfo info = processor();
  DeviceProfile profile = unmeasured(info);
  const auto record = [&](const std::string& kind, double us) {
    profile.ops[kind] = {{.cost = info_of(Op::linear).rule->cost(call), .us = us, .spread = 0.01}};
  };
  record("linear F32 Q4_0 -> F32 in halves", 7);
  const DeviceCost halves(info, &profile);
  EXPECT_NEAR(halves.compute(call, Arithmetic::halves).us, 7, 0.2);
  EXPECT_TRUE(halves.rests_on_measurements(halves.compute(call, Arithmetic::halves)));
  EXPECT_NEAR(halves.compute(call).us, 7, 0.2) << "how it is computed is not known";
  EXPECT_GE(halves.compute(call, Arithmetic::f32).uncertainty_us, 6.8);
  EXPECT_FALSE(halves.rests_on_measurements(halves.compute(call, Arithmetic::f32)));
  record("linear F32 Q8_0 -> F32", 16);
  EXPECT_NEAR(DeviceCost(info, &profile).compute(call, Arithmetic::f32).us, 16, 0.4) << "other dtypes are nearer";
  record("linear F32 Q4_0 -> F32", 14);
  const DeviceCost both(info, &profile);
  EXPECT_NEAR(both.compute(call, Arithmetic::f32).us, 14, 0.4);
  EXPECT_NEAR(both.compute(call, Arithmetic::halves).us, 7, 0.2);
}

}  // namespace
}  // namespace shunt
