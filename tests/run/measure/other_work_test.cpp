// What other programs disturbed is measured again, and not kept if that does not help.
#include "run/measure/other_work.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "run/graphs.h"
#include "run/measure/brief_calibration.h"
#include "run/pool/device_pool.h"
#include "run/wrong_beliefs.h"

namespace shunt {
namespace {

// Returns times that grow with each call: by a second, `all_s` of it for everybody and `own_s` for this process.
ProcessorTimesSource times_of(double all_s, double own_s, std::uint32_t processors) {
  return [=, calls = 0]() mutable -> std::optional<ProcessorTimes> {
    const double seconds = calls++;
    return ProcessorTimes{
        .wall_s = 100 + seconds, .all_s = 5 + all_s * seconds, .own_s = 2 + own_s * seconds, .processors = processors};
  };
}

DeviceInfo processor(std::uint32_t threads) {
  DeviceInfo info;
  info.type = DeviceType::cpu;
  info.compute_units = threads;
  return info;
}

TEST(OtherWork, IsTheShareOfTheProcessorsThatTheThreadsNeededAndOthersTook) {
  EXPECT_EQ(OtherWork(processor(4), times_of(4, 4, 4)).share(), 0);
  EXPECT_NEAR(OtherWork(processor(4), times_of(4, 2, 4)).share(), 0.5, 1e-9);
  EXPECT_EQ(OtherWork(processor(2), times_of(4, 2, 4)).share(), 0) << "there is room for both";
  EXPECT_NEAR(OtherWork(processor(2), times_of(4, 1, 4)).share(), 0.5, 1e-9);
  EXPECT_EQ(OtherWork(processor(4), times_of(2, 2, 2)).share(), 0) << "no others, but more threads than processors";
  EXPECT_EQ(OtherWork(processor(4), times_of(9, 0, 4)).share(), 1) << "clocks differ";
  EXPECT_EQ(OtherWork(processor(4), times_of(1, 2, 4)).share(), 0);
}

TEST(OtherWork, IsNoneWhereItIsUnknown) {
  EXPECT_EQ(OtherWork(processor(4), {}).share(), 0);
  EXPECT_EQ(OtherWork(processor(4), [] { return std::optional<ProcessorTimes>(); }).share(), 0);
  DeviceInfo gpu = processor(4);
  gpu.type = DeviceType::discrete;
  EXPECT_EQ(OtherWork(gpu, times_of(4, 0, 4)).share(), 0);
  const auto at_once = [] { return std::optional(ProcessorTimes{.wall_s = 1, .processors = 4}); };
  EXPECT_EQ(OtherWork(processor(4), at_once).share(), 0) << "too short to tell";
}

class DisturbedBriefCalibration : public test::WrongBeliefs {
 protected:
  // Measures a GPU and a processor for a little work, and returns which ids the file has afterwards.
  std::vector<std::string> kept(const ProcessorTimesSource& times) {
    const auto runtime = machine(
        {{.id = "gpu:0", .uncertainty = 0.9},
         {.id = "cpu:0", .type = DeviceType::cpu, .emulated = false, .uncertainty = 0.9, .memory_pool = "host"}},
        true);
    const DevicePool pool(*runtime);
    const Graph graph = test::chain_of_linears(1);
    const Workload work[] = {{&graph, 1}};
    const auto costs = measure_briefly({.runtime = *runtime,
                                        .device_pool = pool,
                                        .work = work,
                                        .margin = {},
                                        .forecast = {},
                                        .processor_times = times},
                                       nullptr);
    EXPECT_TRUE(costs.has_value());
    if (costs) {
      for (const DeviceCost& cost : *costs) EXPECT_TRUE(cost.has_profile()) << "for this process";
    }
    std::string warning;
    std::vector<std::string> ids;
    const auto profile = load_profile(*profile_path(), warning);
    EXPECT_TRUE(profile.has_value());
    if (profile) {
      for (const DeviceProfile& device : profile->devices) ids.push_back(device.id);
    }
    return ids;
  }
};

TEST_F(DisturbedBriefCalibration, IsNotKept) {
  EXPECT_EQ(kept(times_of(2, 0.5, 2)), std::vector<std::string>{"gpu:0"});
  ASSERT_EQ(notices_.size(), 2U);
  EXPECT_EQ(notices_[1], "what was measured of cpu:0 is not kept: other programs took 50 % of its processors");
}

TEST_F(DisturbedBriefCalibration, IsKeptOnceTheOthersHaveEnded) {
  const auto busy = times_of(2, 0.5, 2);
  const auto quiet = times_of(0.5, 0.5, 2);
  const auto calls = std::make_shared<int>(0);  // two in each try
  const auto ending = [=] { return ++*calls <= 2 ? busy() : quiet(); };
  EXPECT_EQ(kept(ending), (std::vector<std::string>{"gpu:0", "cpu:0"}));
  EXPECT_EQ(notices_.size(), 1U);
}

TEST_F(DisturbedBriefCalibration, IsKeptBesideLittleWork) {
  EXPECT_EQ(kept(times_of(1, 0.9, 2)), (std::vector<std::string>{"gpu:0", "cpu:0"}));
  EXPECT_EQ(notices_.size(), 1U);
}

}  // namespace
}  // namespace shunt
