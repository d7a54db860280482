// A model whose cache lies in the host's memory, because a GPU has too little. Prompts use copies of it there.
#include <algorithm>

#include "models/reference.h"
#include "models/small_gpu.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kLongContext = 4096;
constexpr SessionOptions kShortSteps{
    .context = kLongContext, .max_batch_tokens = 64, .numerics = Numerics::exact, .margin = 0.05};

std::size_t copies_of_state(const Plan& plan) {
  return static_cast<std::size_t>(
      std::ranges::count(plan.steps, Copied::state, [](const Step& step) { return step.transfer.copied; }));
}

class TravellingCaches : public testing::Test {
 protected:
  // Reads tokens in both sessions, and expects the same logits but for rounding.
  void read(std::uint32_t sequence, std::span<const Token> tokens) {
    std::vector<float> expected;
    for (Session* session : {alone_.session.get(), loaded_.session.get()}) {
      const Status status = session->prefill(sequence, tokens);
      ASSERT_TRUE(status.has_value()) << status.error().message;
      const std::span<const float> logits = session->logits(0);
      if (expected.empty()) expected.assign(logits.begin(), logits.end());
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 1e-3) << i;
    }
  }
  [[nodiscard]] const Plan& plan_for(std::uint32_t tokens) {
    const auto plan = loaded_.session->plan_for(tokens, 1);
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return **plan;
  }

  Loaded loaded_{kTrainedModel, with_small_gpu(std::uint64_t{10} << 20U, 1e11), kShortSteps};
  Loaded alone_{kTrainedModel, "cpu:scalar", kShortSteps};
};

std::vector<Token> text(std::size_t tokens, Token first) {
  std::vector<Token> text;
  for (std::size_t i = 0; i < tokens; ++i) text.push_back(3 + (first + static_cast<Token>(i) * 7) % 200);
  return text;
}

TEST_F(TravellingCaches, GiveTheSameTextAsThoseThatStay) {
  read(0, text(150, 1));  // in three steps, of which the later ones read what the first has written
  EXPECT_GT(copies_of_state(plan_for(64)), 0U);
  EXPECT_EQ(copies_of_state(plan_for(1)), 0U);
  for (const Token token : text(5, 9)) read(0, std::span(&token, 1));
  read(0, text(40, 3));
  // Text after a shorter one takes pages again, in another order.
  for (Session* session : {alone_.session.get(), loaded_.session.get()}) session->truncate(0, 70);
  read(0, text(90, 5));
  for (const Token token : text(3, 2)) read(0, std::span(&token, 1));
}

TEST_F(TravellingCaches, TravelAsFarAsTheyAreUsed) {
  read(0, text(64, 1));
  trace::Recorder& recorder = opened(*loaded_.runtime).recorder();
  recorder.clear();
  read(0, text(64, 2));
  std::uint64_t bytes = 0;
  for (const trace::ExecutionEvent& event : recorder.snapshot())
    if (event.kind == trace::Kind::transfer && recorder.text_of(event.what).contains("cache.")) bytes += event.bytes;
  const Plan& plan = plan_for(64);
  std::uint64_t whole = 0;
  for (const Step& step : plan.steps)
    if (step.transfer.copied == Copied::state) whole += step.transfer.bytes;
  EXPECT_GT(whole, 0U);
  EXPECT_EQ(bytes, whole * 64 / kLongContext) << "two of the pages each way";
}

}  // namespace
}  // namespace shunt::models
