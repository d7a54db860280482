// A model on two GPUs, each of which has too little memory for it.
#include "models/reference.h"
#include "models/small_gpu.h"
#include "models/step_planner.h"

namespace shunt::models {
namespace {

// Weights and cache have 12 MB, the values of a step a few hundred kilobytes.
TEST(TwoGpusAlone, LeaveRoomForStepsOfPromptsWithoutMuchToSpare) {
  const auto model = Loaded::take(Model::load(kTrainedModel));
  const auto runtime = with_small_gpus(2, 7'200'000, 1e11);
  DeviceSet set(*runtime);
  set.devices = set.devices.subspan(1);  // without the processor
  set.costs = set.costs.subspan(1);
  set.budgets = set.budgets.subspan(1);
  StepPlanner planner(*model, set, {.context = 512, .max_batch_tokens = 64, .margin = 0.05}, 512);
  for (const std::uint32_t tokens : {1U, 64U}) {
    const auto plan = planner.plan(tokens, 1);
    EXPECT_TRUE(plan.has_value()) << tokens << ": " << plan.error().message;
  }
}

}  // namespace
}  // namespace shunt::models
