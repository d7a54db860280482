// Sessions on devices that are slower or faster than their priors.
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "models/generate.h"
#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/short_run.h"
#include "plan/costs/profile.h"
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

// A record that keeps the GPU idle, or one that keeps it from its work.
TEST_F(WrongBeliefs, OnDiskAreCorrectedWithinAFewTokens) {
  const sim::Spec gpu{
      .id = "gpu:0", .rate = {.flops_per_s = 1e9, .bytes_per_s = 1e7}, .uncertainty = 0.9, .watchdog_us = 1e15};
  const sim::Spec cpu{.id = "cpu:0",
                      .type = DeviceType::cpu,
                      .rate = {.flops_per_s = 1e8, .bytes_per_s = 1e6},
                      .uncertainty = 0.9,
                      .memory_pool = "host",
                      .watchdog_us = 1e15};
  const std::vector<sim::Spec> specs = {gpu, cpu};
  Loaded first(folder_.file("m"), machine(specs, true), options_);
  first.session->prepare_for({.prompt_tokens = 64, .generated_tokens = 1'000'000}, nullptr);
  ASSERT_EQ(notices_.size(), 1U);
  ASSERT_EQ(device_of(first), "gpu:0");
  const std::filesystem::path path = *profile_path();
  std::ifstream file(path);
  const Json sound = Json::parse(file);

  const std::vector<Token> prompt = {5, 17, 40, 60};
  for (const auto& [device, factor] : {std::pair{"gpu:0", 1000.0}, {"cpu:0", 0.001}}) {
    Json wrong = sound;
    for (Json& each : wrong["devices"])
      for (Json& kind : each["ops"])
        for (Json& point : kind)
          if (each["id"] == device) point["us"] = point["us"].get<double>() * factor;
    std::ofstream(path) << wrong.dump();
    notices_.clear();
    Loaded misled(folder_.file("m"), machine(specs, true), options_);
    EXPECT_EQ(device_of(misled), "cpu:0");
    const auto generation = models::generate(*misled.session, prompt, {.max_tokens = 60, .ignore_end = true}, {});
    ASSERT_TRUE(generation.has_value()) << generation.error().message;
    EXPECT_EQ(device_of(misled), "gpu:0");
    ASSERT_EQ(notices_.size(), 2U);
    EXPECT_EQ(notices_[1].find(std::string("wrong records of ") + device + " are replaced: "), 0U) << notices_[1];
  }
}

}  // namespace
}  // namespace shunt::models
