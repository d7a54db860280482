// Records that stand out are found in either direction, until a second measurement has confirmed them.
#include "plan/costs/outliers.h"

#include <gtest/gtest.h>

#include "plan/costs/cost.h"

namespace shunt {
namespace {

constexpr const char* kKind = "add F32 F32 -> F32";
constexpr const char* kOther = "silu F32 -> F32";

DeviceInfo gpu() {
  DeviceInfo info;
  info.id = "gpu:0";
  info.memory_pool = "gpu";
  info.prior = {.launch_us = 10,
                .op_us = 1,
                .flops_per_s = 1e10,
                .bytes_per_s = 1e10,
                .link_us = 10,
                .link_bytes_per_s = 1e9,
                .families = {}};
  return info;
}

Cost work(double bytes) { return {.flops = bytes / 8, .bytes_read = bytes, .bytes_written = bytes / 2}; }

// A device that is `slower` times as slow as its prior.
DeviceProfile measured_profile(double slower = 1) {
  DeviceProfile profile{.id = "gpu:0", .checked_s = 1e9, .launch_us = 12, .wake_us = 30, .op_us = 1};
  for (const char* kind : {kKind, kOther})
    for (const double bytes : {1e4, 1e6, 1e8})
      profile.ops[kind].push_back(
          {.cost = work(bytes), .us = slower * (1 + work(bytes).bytes() / 1e4), .spread = 0.02});
  profile.to_device = profile.from_device = profile.both_ways = {.us = 12, .bytes_per_s = 9e8};
  return profile;
}

TEST(Outliers, AreNotAmongRecordsLikeThePrior) {
  EXPECT_TRUE(outliers_of(measured_profile(), gpu()).empty());
  EXPECT_TRUE(outliers_of(measured_profile(10), gpu()).empty());
  EXPECT_EQ(outliers_of(measured_profile(50), gpu()).size(), 6U) << "all ops are far from their priors";
}

TEST(Outliers, AreFoundInEitherDirectionAndOnlyThey) {
  for (const double factor : {1000.0, 20.0, 1 / 20.0, 0.001})
    for (const double slower : {0.5, 1.0, 100.0}) {
      DeviceProfile profile = measured_profile(slower);
      for (Outlier& outlier : outliers_of(profile, gpu())) confirm(profile, outlier);
      profile.ops[kKind][1].us *= factor;
      const std::vector<Outlier> outliers = unconfirmed_outliers(profile, gpu());
      ASSERT_EQ(outliers.size(), 1U) << factor << " " << slower;
      EXPECT_EQ(outliers[0].what, kKind);
      EXPECT_EQ(outliers[0].cost.bytes_read, 1e6);
      EXPECT_EQ(outliers[0].times_slower > 1, factor > 1);
    }
}

TEST(Outliers, OfStartsAndLinksAreFound) {
  for (const double factor : {1000.0, 0.001})
    for (double LinkRates::* const number : {&LinkRates::us, &LinkRates::bytes_per_s}) {
      DeviceProfile profile = measured_profile();
      profile.from_device.*number *= factor;
      const std::vector<Outlier> outliers = outliers_of(profile, gpu());
      if (number == &LinkRates::us && factor < 1) {
        EXPECT_TRUE(outliers.empty()) << "latency is a small part of the time of a copy";
        continue;
      }
      ASSERT_EQ(outliers.size(), 1U);
      EXPECT_EQ(outliers[0].what, "copying from the device");
      EXPECT_EQ(outliers[0].times_slower > 1, (number == &LinkRates::us) == (factor > 1));
    }
  for (const StartRecord& start : kStartRecords) {
    DeviceProfile profile = measured_profile();
    profile.*start.us *= 1000;
    const std::vector<Outlier> outliers = outliers_of(profile, gpu());
    ASSERT_EQ(outliers.size(), 1U) << start.name;
    EXPECT_EQ(outliers[0].what, start.name);
  }
  DeviceInfo host = gpu();
  host.memory_pool = kHostPool;
  DeviceProfile profile = measured_profile();
  profile.to_device.us *= 1000;
  EXPECT_TRUE(outliers_of(profile, host).empty()) << "nothing is copied to it";
}

TEST(Outliers, AreConfirmedAsLongAsTheirNumbersStay) {
  DeviceProfile profile = measured_profile();
  profile.ops[kKind][1].us *= 100;
  for (const Outlier& outlier : unconfirmed_outliers(profile, gpu()))
    for (int times = 0; times < 2; ++times) confirm(profile, outlier);
  EXPECT_EQ(profile.confirmed.size(), 1U);
  EXPECT_TRUE(unconfirmed_outliers(profile, gpu()).empty());
  const auto read = profile_from_json(to_json(Profile{.devices = {profile}}));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->devices[0].confirmed, profile.confirmed);

  profile.ops[kKind][1].us *= 2;
  EXPECT_EQ(unconfirmed_outliers(profile, gpu()).size(), 1U);
  keep_used_confirmations(profile, gpu());
  EXPECT_TRUE(profile.confirmed.empty());
}

TEST(Outliers, MatterToShapesThatArePredictedFromThem) {
  DeviceProfile profile = measured_profile();
  profile.ops[kKind][1].us *= 100;
  DeviceCost cost(gpu(), &profile);
  ASSERT_EQ(cost.unconfirmed().size(), 1U);
  const Outlier outlier = cost.unconfirmed()[0];
  EXPECT_TRUE(cost.may_rest_on(outlier, kKind, work(1e6)));
  EXPECT_FALSE(cost.may_rest_on(outlier, kKind, work(1e8))) << "it was measured itself";
  EXPECT_TRUE(cost.may_rest_on(outlier, kKind, work(1e7)));
  EXPECT_FALSE(cost.may_rest_on(outlier, kOther, work(1e7)));
  EXPECT_TRUE(cost.may_rest_on(outlier, "linear F32 F32 -> F32", work(1e7))) << "of which there are no records";
  cost.trust_outliers();
  EXPECT_TRUE(cost.unconfirmed().empty());
}

}  // namespace
}  // namespace shunt
