// Sessions on devices that are slower or faster than their priors.
#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/short_run.h"
#include "run/wrong_beliefs.h"

namespace shunt::models {
namespace {

class WrongBeliefs : public test::WrongBeliefs {
 protected:
  void SetUp() override { ASSERT_TRUE(make_model("nano", "F16", folder_.file("m")).has_value()); }

  std::vector<Token> generate(Loaded& loaded, std::size_t count) {
    const std::vector<Token> prompt = {5, 17, 40, 60};
    EXPECT_TRUE(loaded.session->prefill(0, prompt).has_value());
    std::vector<Token> tokens;
    while (tokens.size() < count) {
      tokens.push_back(best_of(loaded.session->logits(0)));
      EXPECT_TRUE(loaded.session->prefill(0, std::span(tokens).last(1)).has_value());
    }
    return tokens;
  }
  static std::string device_of(Loaded& loaded) {
    const Plan* plan = Loaded::take(loaded.session->plan_for(1, 1));
    for (const Decision& decision : plan->decisions)
      if (decision.device != plan->decisions.front().device) return "several";
    return plan->devices[plan->decisions.front().device].id;
  }

  TestFolder folder_;
  const SessionOptions options_{.context = 128, .margin = 0.05};
};

TEST_F(WrongBeliefs, AreCorrectedByWhatReallyHappens) {
  Loaded honest(folder_.file("m"), machine(1), options_);
  const std::vector<Token> text = generate(honest, 60);
  EXPECT_EQ(device_of(honest), "gpu:0");
  EXPECT_TRUE(notices_.empty());

  Loaded slow(folder_.file("m"), machine(100), options_);
  EXPECT_EQ(device_of(slow), "gpu:0");
  EXPECT_EQ(generate(slow, 60), text);
  EXPECT_EQ(device_of(slow), "cpu:0");
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("another plan should take"), std::string::npos) << notices_[0];
}

TEST_F(WrongBeliefs, ThatChangeNoPlanMoveNothing) {
  for (const double slower : {0.05, 0.2, 3.0}) {
    Loaded wrong(folder_.file("m"), machine(slower), options_);
    static_cast<void>(generate(wrong, 100));
    EXPECT_EQ(device_of(wrong), "gpu:0");
    EXPECT_TRUE(notices_.empty()) << notices_.front();
  }
}

}  // namespace
}  // namespace shunt::models
