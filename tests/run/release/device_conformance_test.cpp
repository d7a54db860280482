// Every row of ops.def on every device other than the CPU.
#include <algorithm>
#include <set>
#include <string>

#include "devices/each_api.h"
#include "models/reference.h"
#include "models/step_planner.h"
#include "run/verify/conformance.h"
#include "run/verify/cpu_devices.h"
#include "run/verify/support_check.h"

namespace shunt {
namespace {

// The ops that the trained model runs, fused or not, and those that stand in for them elsewhere. A device that declines
// one of these entirely cannot run the model. Planned for a device that splits fused rows from which only GPUs gain.
std::set<Op> ops_of_a_model() {
  using models::Loaded;
  const auto runtime = Loaded::take(Runtime::create({.threads = 1, .devices = "cpu:simd"}));
  const auto model = Loaded::take(models::Model::load(models::kTrainedModel));
  std::set<Op> found{Op::argmax, Op::scale};
  for (const bool fuse : {true, false}) {
    const auto step = Loaded::take(models::StepPlanner(*model, *runtime, {.fuse = fuse}, 64).plan(8, 1));
    for (const Unit& unit : step.plan.units) found.insert(unit.op);
  }
  return found;
}

class DeviceConformance : public test::EachApi {
 protected:
  static void expect_right(const ConformanceReport& report, std::span<Device* const> devices,
                           const ConformanceOptions& options) {
    for (const ConformanceFailure& failure : report.failures) ADD_FAILURE() << test::text_of(failure, options.seed);
    for (const KnownFailure& row : report.unexpected_passes)
      ADD_FAILURE() << row.device << " passes, though its failure is known: " << row.reason;
    for (const Device* device : devices) test::expect_as_recorded(report, *device, test::is_expected(GetParam()));
    for (const ConformanceTally& tally : report.tallies)
      EXPECT_TRUE(tally.declined == 0 || !tally.reason.empty()) << tally.device << " declines without a reason";
  }
};

TEST_P(DeviceConformance, GivesTheReferencesResult) {
  const ConformanceOptions options{.sizes = {Sizes::awkward}};
  const std::set<Op> needed = ops_of_a_model();
  ASSERT_FALSE(needed.empty());
  const std::vector<Device*> devices = test::quick_ones(devices_);
  const auto report = check_conformance(devices, options);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  expect_right(*report, devices, options);
  for (const Device* device : devices)
    for (const Op op : needed)
      EXPECT_TRUE(std::ranges::any_of(report->tallies,
                                      [&](const ConformanceTally& tally) {
                                        return tally.device == device->info().id && tally.op == op && tally.passed > 0;
                                      }))
          << device->info().id << " ran no case of " << name_of(op);
}

// SwiftShader beside another driver of Vulkan takes eight times as long for the same kernels, so it runs the first op
// of each family, but for experts, whose product linear has. Through WebGPU it runs every op.
class ConformanceOnSwiftShader : public DeviceConformance {};

TEST_P(ConformanceOnSwiftShader, GivesTheReferencesResult) {
  ConformanceOptions options{.ops = test::running_ops(), .families = true, .sizes = {Sizes::awkward}};
  std::erase(options.ops, Op::linear_experts);
  std::vector<Device*> devices = devices_;
  for (const Device* device : test::quick_ones(devices_)) std::erase(devices, device);
  if (devices.empty()) GTEST_SKIP() << "SwiftShader is absent, or " << GetParam() << " has nothing else";
  const auto report = check_conformance(devices, options);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  expect_right(*report, devices, options);
}

// Like rms_norm, these loop over rows of four million columns, which is slow on SwiftShader. An op that is missing here
// costs time, but no check.
constexpr Op kLoopsOverRows[] = {Op::layer_norm, Op::softmax,    Op::linear_experts, Op::argmax,
                                 Op::top_k,      Op::top_values, Op::reduce_sum};

// OpenGL and WebGPU have the kernels of Vulkan, and simulated devices those of the reference, so these show only how
// they divide work that exceeds their limits.
constexpr Op kDivided[] = {Op::add, Op::copy};

class DevicesPastEveryBorder : public test::EachApi {};

TEST_P(DevicesPastEveryBorder, GiveTheReferencesResult) {
  for (Device* device : test::quick_ones(devices_)) {  // the borders are the kernels' own, whatever the driver is
    ConformanceOptions options{.ops = test::running_ops()};
    std::erase(options.sizes, Sizes::awkward);
    if (GetParam() == "gl" || GetParam() == "webgpu" || GetParam() == "sim")
      options.ops.assign(std::begin(kDivided), std::end(kDivided));
    if (test::is_swiftshader(*device))
      std::erase_if(options.ops,
                    [](Op op) { return std::ranges::find(kLoopsOverRows, op) != std::end(kLoopsOverRows); });
    const auto report = check_conformance({&device, 1}, options);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    for (const ConformanceFailure& failure : report->failures) ADD_FAILURE() << test::text_of(failure, options.seed);
  }
}

SHUNT_FOR_EACH_API(DeviceConformance);
SHUNT_FOR_APIS(ConformanceOnSwiftShader, std::vector<std::string>{"vulkan"});

// OpenGL ES has the kernels of OpenGL, and here their driver.
std::vector<std::string> apis_with_kernels_of_their_own() {
  std::vector<std::string> apis = test::apis_beside_the_cpu();
  std::erase(apis, "gles");
  return apis;
}
SHUNT_FOR_APIS(DevicesPastEveryBorder, apis_with_kernels_of_their_own());

}  // namespace
}  // namespace shunt
