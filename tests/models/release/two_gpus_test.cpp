// A model whose layers two GPUs divide: they compute different pieces of a prompt at the same time.
#include <algorithm>

#include "models/reference.h"
#include "models/small_gpu.h"
#include "models/step_planner.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kLongPrompt = 2048;
constexpr SessionOptions kLongOptions{.context = kLongPrompt + 64, .numerics = Numerics::exact, .margin = 0.05};

// Returns how long both GPUs compute at the same time.
double together_us(const Plan& plan) {
  double us = 0;
  for (const shunt::Step& step : plan.steps)
    for (const shunt::Step& other : plan.steps)
      if (step.kind == shunt::Step::Kind::compute && other.kind == shunt::Step::Kind::compute &&
          plan.devices[step.device].id == "gpu:0" && plan.devices[other.device].id == "gpu:1")
        us += std::max(std::min(step.end_us, other.end_us) - std::max(step.start_us, other.start_us), 0.0);
  return us;
}

std::vector<float> logits_after(Session& session, std::span<const Token> prompt) {
  const Status status = session.prefill(0, prompt);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  const std::span<const float> logits = session.logits(0);
  return {logits.begin(), logits.end()};
}

class TwoGpus : public testing::Test {
 protected:
  [[nodiscard]] const Plan& plan_for(std::uint32_t tokens) {
    const auto plan = loaded_.session->plan_for(tokens, 1);
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return **plan;
  }

  Loaded loaded_{kTrainedModel, with_small_gpus(2, std::uint64_t{20} << 20U, 1e11), kLongOptions};
};

TEST_F(TwoGpus, ComputeDifferentPiecesOfAPromptAtTheSameTime) {
  const Plan& whole = plan_for(kLongPrompt);
  const Plan& usual = plan_for(kUsualStepTokens);
  EXPECT_LT(together_us(usual), 0.05 * usual.predicted_us) << "one waits for the other";
  EXPECT_GT(together_us(whole), 0.4 * whole.predicted_us);
  EXPECT_LT(whole.predicted_us, 0.8 * kLongPrompt / kUsualStepTokens * usual.predicted_us);
}

TEST_F(TwoGpus, GiveTheTextOfTheProcessor) {
  Loaded alone(kTrainedModel, "cpu:simd", kLongOptions);
  std::vector<Token> prompt;
  for (std::uint32_t i = 0; i < 2 * kUsualStepTokens; ++i) prompt.push_back(static_cast<Token>(3 + i * 7 % 200));
  const std::vector<float> expected = logits_after(*alone.session, prompt);
  const std::vector<float> logits = logits_after(*loaded_.session, prompt);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 1e-3) << i;
}

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
