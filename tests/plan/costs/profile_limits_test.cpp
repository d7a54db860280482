// The limits on what a profile can claim, whoever wrote it.
#include "plan/costs/profile_limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plan/costs/cost.h"

namespace shunt {
namespace {

constexpr const char* kAddition = "add F32 F32 -> F32";
constexpr double kElements = 4 << 20;

// Calls `use` with an addition of kElements.
template <class Use>
auto with_addition(const Use& use) {
  const Operand x = Operand::contiguous(DType::F32, {1024, static_cast<std::uint32_t>(kElements) / 1024});
  const Operand* const inputs[] = {&x, &x};
  const Attributes none;
  return use(OpCall{.op = Op::add, .attributes = &none, .inputs = inputs, .output = &x});
}

Cost addition(double elements) {
  const Cost whole = with_addition([](const OpCall& call) { return info_of(call.op).rule->cost(call); });
  const double part = elements / kElements;
  return {part * whole.flops, part * whole.bytes_read, part * whole.bytes_written};
}
Cost product(double rows) { return {2 * rows * 1024 * 1024, 4 * (1024.0 * 1024 + 1024 * rows), 4 * 1024 * rows}; }

DeviceInfo device_of(std::uint32_t units) {
  DeviceInfo info;
  info.id = "cpu:simd";
  info.type = DeviceType::cpu;
  info.compute_units = units;
  info.prior = {.launch_us = 7, .op_us = 1, .flops_per_s = 1e11, .bytes_per_s = 1e10, .families = {}};
  return info;
}

// Measurements of one processor, through caches, memory and many operations per byte.
DeviceProfile measured() {
  DeviceProfile profile{.id = "cpu:simd", .checked_s = 1e9, .launch_us = 3, .wake_us = 20, .op_us = 0.5};
  for (const double elements : {1e3, 1e4, 1e5, kElements})
    profile.ops[kAddition].push_back({.cost = addition(elements), .us = 1 + elements * 12 / 2e4, .spread = 0.02});
  for (const double rows : {1.0, 4.0, 16.0, 64.0, 256.0})
    profile.ops["linear F32 F32 -> F32"].push_back({.cost = product(rows), .us = 250 + rows * 20, .spread = 0.02});
  profile.to_device = profile.from_device = {.us = 10, .bytes_per_s = 2e10, .spread = 0.1};
  return profile;
}

Prediction of_addition(const DeviceInfo& device, const DeviceProfile& profile) {
  return with_addition([&](const OpCall& call) { return DeviceCost(device, &profile).compute(call); });
}

TEST(ProfileLimits, LeaveWhatProcessorsReachAlone) {
  for (const std::uint32_t units : {0U, 2U}) {
    const UsableProfile usable = within_limits(measured(), device_of(units));
    EXPECT_EQ(usable.refused, 0U);
    EXPECT_EQ(to_json(Profile{.devices = {usable.profile}}), to_json(Profile{.devices = {measured()}}));
  }
}

TEST(ProfileLimits, ARecordOfNextToNoTimeIsNotUsed) {
  const double us = of_addition(device_of(0), measured()).us;
  EXPECT_NEAR(us, 2517, 100);
  for (const std::uint32_t units : {0U, 2U})
    for (const bool has_others : {true, false})
      for (std::size_t point = 0; point < 4; ++point) {
        DeviceProfile poisoned = measured();
        if (!has_others) poisoned.ops.erase("linear F32 F32 -> F32");
        poisoned.ops[kAddition][point].us = 0.001;
        if (point == 0 && !has_others && units == 0) continue;  // too little is known to tell
        EXPECT_EQ(within_limits(poisoned, device_of(units)).refused, 1U) << units << " " << has_others << " " << point;
        const Prediction prediction = of_addition(device_of(units), poisoned);
        EXPECT_NEAR(prediction.us, us, 0.3 * us) << units << " " << has_others << " " << point;
        EXPECT_TRUE(DeviceCost(device_of(units), &poisoned).is_doubted());
      }
}

TEST(ProfileLimits, AKindOfWhichNothingIsTrueCountsAsNotMeasured) {
  DeviceProfile poisoned = measured();
  for (MeasuredOp& point : poisoned.ops[kAddition]) point.us = 1e-9;
  const UsableProfile usable = within_limits(poisoned, device_of(2));
  EXPECT_EQ(usable.refused, 4U);
  EXPECT_FALSE(usable.profile.ops.contains(kAddition));
  const Prediction prediction = of_addition(device_of(2), poisoned);
  EXPECT_GT(prediction.us, 100);
  EXPECT_GE(prediction.uncertainty_us, 0.5 * prediction.us);
}

TEST(ProfileLimits, NumbersThatAreNoneAreNotUsed) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double none : {0.0, -1.0, std::nan(""), infinity}) {
    DeviceProfile broken = measured();
    broken.ops[kAddition][1].us = none;
    EXPECT_EQ(within_limits(broken, device_of(2)).refused, 1U) << none;
    broken = measured();
    broken.few_tokens_ratio = none;
    EXPECT_EQ(within_limits(broken, device_of(2)).profile.few_tokens_ratio, 1) << none;
    if (none == 0) continue;
    broken = measured();
    broken.ops[kAddition][1].cost.bytes_read = none;
    broken.ops[kAddition][2].spread = none;
    broken.launch_us = none;
    broken.to_device.bytes_per_s = none;
    EXPECT_EQ(within_limits(broken, device_of(2)).refused, 4U) << none;
    const DeviceCost cost(device_of(2), &broken);
    EXPECT_EQ(cost.launch_us(), 7) << "as is believed of it";
    EXPECT_TRUE(std::isfinite(of_addition(device_of(2), broken).us));
  }
}

}  // namespace
}  // namespace shunt
