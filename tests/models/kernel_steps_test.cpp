// Kernels that won alone are kept where whole steps do not take longer with them.
#include "models/kernel_steps.h"

#include "devices/discovery/registry.h"
#include "devices/two_kernels.h"
#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/short_run.h"
#include "models/step_planner.h"
#include "run/opened_devices.h"

namespace shunt::models {
namespace {

using test::TimesOfKernels;
using test::TwoKernels;

constexpr std::uint32_t kStepTokens = 8;

// A machine whose only device has two kernels for attention.
std::unique_ptr<Runtime> machine_with(TimesOfKernels times) {
  const sim::Spec cpu{.id = "cpu:0",
                      .type = DeviceType::cpu,
                      .launch_us = 1,
                      .op_us = 0,
                      .rate = {.flops_per_s = 1e10, .bytes_per_s = 1e9},
                      .memory_pool = "host"};
  BackendReport report{.api = "sim"};
  report.devices.push_back(std::make_unique<TwoKernels>(
      sim::make_sim_device(cpu, std::make_shared<sim::VirtualClock>()), Op::attention, kStepTokens, times));
  Registry registry;
  registry.backends.push_back(std::move(report));
  return runtime_over(std::move(registry), std::make_unique<trace::Recorder>(0));
}

class KernelSteps : public testing::Test {
 protected:
  KernelSteps() {
    EXPECT_TRUE(make_model("nano", "F16", folder_.file("m")).has_value());
    model_ = Loaded::take(Model::load(folder_.file("m")));
  }

  // Returns the kernel of attention after "quick" won over "plain" for steps of kStepTokens.
  std::string confirmed(TimesOfKernels times) const {
    const auto runtime = machine_with(times);
    const Device& device = *opened(*runtime).handles()[0];
    const StepPlanner planner(*model_, *runtime, {}, context_of(*runtime));
    const Graph graph = *planner.graph_of(kStepTokens, 1);
    std::vector<KernelComparison> won;
    for (const Node& node : graph.nodes()) {
      const Unit unit = unit_of(graph, static_cast<NodeId>(&node - graph.nodes().data()));
      const UnitCall unit_call(graph, unit);
      const OpCall call = unit_call.call();
      const std::vector<KernelCandidate> kernels = device.kernels_for(call, Layout::rows);
      if (kernels.empty()) continue;
      won.push_back({.kind = choice_kind(call, kernels),
                     .choice = {.cost = info_of(call.op).rule->cost(call), .kernel = "quick"},
                     .tokens = kStepTokens,
                     .times = {{.kernel = "plain"}, {.kernel = "quick"}}});
    }
    EXPECT_FALSE(won.empty());
    const auto kept =
        confirm_kernels(*model_, *runtime, Numerics::automatic, won, [](std::size_t, std::size_t) { return true; });
    EXPECT_TRUE(kept.has_value()) << kept.error().message;
    return kept ? kept->front().choice.kernel : "";
  }

  std::uint32_t context_of(const Runtime& runtime) const {
    return choose_context(*model_, runtime, {.context = kStepContext}).value_or(0);
  }

  TestFolder folder_;
  std::unique_ptr<Model> model_;
};

TEST_F(KernelSteps, AKernelThatMakesStepsFasterIsKept) {
  EXPECT_EQ(confirmed({.plain_us = 100, .quick_us = 50}), "quick");
}

TEST_F(KernelSteps, AKernelThatMakesStepsSlowerIsNot) {
  EXPECT_EQ(confirmed({.plain_us = 100, .quick_us = 50, .quick_beside_others_us = 100}), "plain");
}

TEST_F(KernelSteps, AKernelWithWhichStepsTakeAsLongIsKept) {
  EXPECT_EQ(confirmed({.plain_us = 100, .quick_us = 50, .quick_beside_others_us = 50}), "quick");
}

TEST_F(KernelSteps, EndWhereOneSaysSo) {
  const auto runtime = machine_with(TimesOfKernels());
  const std::vector<KernelComparison> won = {
      {.kind = "attention", .choice = {.kernel = "quick"}, .tokens = kStepTokens, .times = {{.kernel = "plain"}}}};
  const auto ended = confirm_kernels(*model_, *runtime, Numerics::automatic, won,
                                     [](std::size_t done, std::size_t) { return done < 1; });
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, Code::interrupted);
}

}  // namespace
}  // namespace shunt::models
