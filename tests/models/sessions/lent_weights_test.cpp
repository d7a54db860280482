// A model that does not fit a GPU, whose prompts use the memory of some of the weights that are there for generation.
#include <algorithm>

#include "models/reference.h"
#include "models/small_gpu.h"
#include "models/step_planner.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kContext = 256;
constexpr std::uint64_t kMemoryBytes = std::uint64_t{6} << 20U;
constexpr SessionOptions kOptions{.context = kContext, .numerics = Numerics::exact};

// The GPU holds about half of the trained model.
std::unique_ptr<Runtime> small_gpu() { return with_small_gpu(kMemoryBytes, 2e9); }

std::size_t returned(const Plan& plan) {
  return static_cast<std::size_t>(
      std::ranges::count_if(plan.steps, [](const Step& step) { return step.transfer.stays; }));
}

// Returns how many copies the last run made, and forgets it.
std::size_t copies(const Runtime& runtime) {
  trace::Recorder& recorder = opened(runtime).recorder();
  const std::vector<trace::ExecutionEvent> events = recorder.snapshot();
  recorder.clear();
  return static_cast<std::size_t>(std::ranges::count(events, trace::Kind::transfer, &trace::ExecutionEvent::kind));
}

TEST(LentWeights, AreReturnedOnceAfterEachPrompt) {
  Loaded loaded(kTrainedModel, small_gpu(), kOptions);
  Loaded alone(kTrainedModel, "cpu:scalar", kOptions);
  const std::vector<Token> prompt = prompt_ids(0);
  for (int turn = 0; turn < 2; ++turn) {
    std::size_t last = 0;
    for (int token = 0; token < 4; ++token) {
      Token next = 0;
      for (Session* session : {alone.session.get(), loaded.session.get()}) {
        const std::vector<Token> text = token == 0 ? prompt : std::vector<Token>{Token{5} + token};
        const Status status = session->prefill(0, text);
        ASSERT_TRUE(status.has_value()) << status.error().message;
        const std::span<const float> logits = session->logits(0);
        const auto best = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
        if (session == alone.session.get()) next = best;
        EXPECT_EQ(best, next);
      }
      const std::size_t now = copies(*loaded.runtime);
      const auto plan = loaded.session->plan_for(1, 1);
      ASSERT_TRUE(plan.has_value()) << plan.error().message;
      if (token == 1) {
        EXPECT_GT(returned(**plan), 0U);
      }
      if (token == 2) {
        EXPECT_EQ(last - now, returned(**plan));
      }
      if (token == 3) {
        EXPECT_EQ(now, last);
      }
      last = now;
    }
  }
  EXPECT_EQ(loaded.session->used_devices().size(), 2U);
}

TEST(LentWeights, AreThoseOfPlansWithinTheBudgetForEveryStep) {
  Loaded loaded(kTrainedModel, small_gpu(), kOptions);
  StepPlanner planner(*loaded.model, *loaded.runtime, kOptions, kContext);
  std::uint64_t arena = 0;
  for (const std::uint32_t tokens : {1U, 2U, 7U, 64U, kContext}) {
    const PlannedGraph step = Loaded::take(planner.plan(tokens, 1));
    const Status valid = check(step.plan, step.graph);
    EXPECT_TRUE(valid.has_value()) << valid.error().message;
    const auto use = std::ranges::find(step.plan.memory, "gpu:0", &MemoryUse::pool);
    EXPECT_LE(use->total(), kMemoryBytes) << tokens;
    EXPECT_EQ(returned(step.plan) > 0, tokens == 1) << tokens;
    if (arena == 0) arena = step.plan.devices[1].arena_bytes;
    EXPECT_EQ(step.plan.devices[1].arena_bytes, arena) << "all share one arena";
  }
}

// Steps of several sequences have several sizes, and would return weights to each other all the time.
TEST(LentWeights, AreThoseOfSessionsWithOneSequenceOnly) {
  Loaded loaded(kTrainedModel, small_gpu(), kOptions);
  SessionOptions several = kOptions;
  several.max_sequences = 2;
  several.context = kContext / 2;
  StepPlanner planner(*loaded.model, *loaded.runtime, several, kContext / 2);
  EXPECT_EQ(returned(Loaded::take(planner.plan(1, 1)).plan), 0U);
}

}  // namespace
}  // namespace shunt::models
