// Times of whole steps relative to the sums of their ops.
#include "models/step_ratios.h"
#include "run/opened_devices.h"

#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/short_run.h"
#include "sanitized.h"

namespace shunt::models {
namespace {

// A processor that takes `slower` times as long as its prior says.
std::unique_ptr<Runtime> machine(double slower, double believed = 1e10) {
  const double flops = believed;
  const double bytes = believed / 10;
  const sim::Spec cpu{.id = "cpu:0",
                      .type = DeviceType::cpu,
                      .launch_us = 1,
                      .op_us = 0,
                      .rate = {.flops_per_s = flops / slower, .bytes_per_s = bytes / slower},
                      .believed = sim::Rate{.flops_per_s = flops, .bytes_per_s = bytes},
                      .memory_pool = "host"};
  BackendReport report{.api = "sim"};
  report.devices = sim::make_sim_devices(std::vector{cpu}, std::make_shared<sim::VirtualClock>());
  Registry registry;
  registry.backends.push_back(std::move(report));
  return runtime_over(std::move(registry), std::make_unique<trace::Recorder>(0));
}

TEST(StepRatios, AreWhatStepsTakeInPlaceOfWhatWasPredicted) {
  const TestFolder folder;
  ASSERT_TRUE(make_model("nano", "F16", folder.file("m")).has_value());
  const auto model = Loaded::take(Model::load(folder.file("m")));
  for (const double slower : {1.0, 0.8, 1.5}) {
    if (test::kSanitized && slower != 1.5) continue;
    const auto runtime = machine(slower);
    DeviceProfile before = unmeasured(opened(*runtime).handles()[0]->info());
    before.few_tokens_ratio = 7;
    std::size_t steps = 0;
    const auto after =
        measure_steps(*model, *runtime, Numerics::automatic, before, [&](std::size_t done, std::size_t count) {
          EXPECT_TRUE(done == steps || done == steps + 1) << done;
          steps = done;
          EXPECT_LE(done, count);
          return true;
        });
    ASSERT_TRUE(after.has_value()) << after.error().message;
    EXPECT_NEAR(after->few_tokens_ratio, slower, 0.02 * slower);
    EXPECT_NEAR(after->many_tokens_ratio, slower, 0.02 * slower);
  }
}

TEST(StepRatios, EndWhereOneSaysSo) {
  const TestFolder folder;
  ASSERT_TRUE(make_model("nano", "F16", folder.file("m")).has_value());
  const auto model = Loaded::take(Model::load(folder.file("m")));
  const auto runtime = machine(1);
  for (const std::size_t least : {1U, 3U}) {  // while filling the context, or later
    std::size_t last = 0;
    const auto ended =
        measure_steps(*model, *runtime, Numerics::automatic, unmeasured(opened(*runtime).handles()[0]->info()),
                      [&](std::size_t done, std::size_t) { return (last = done) < least; });
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().code, Code::interrupted);
    EXPECT_EQ(last, least);
  }
}

TEST(StepRatios, AreNotMeasuredWhereThatTakesTooLong) {
  const TestFolder folder;
  ASSERT_TRUE(make_model("nano", "F16", folder.file("m")).has_value());
  const auto model = Loaded::take(Model::load(folder.file("m")));
  const auto runtime = machine(1, 1e5);
  const auto refused =
      measure_steps(*model, *runtime, Numerics::automatic, unmeasured(opened(*runtime).handles()[0]->info()),
                    [](std::size_t, std::size_t) { return true; });
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().message.find("a step of 32 tokens is predicted to take"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace shunt::models
