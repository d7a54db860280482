// The trained model on the simulated devices: the tokens of Hugging Face transformers, and the results of the scalar
// CPU.
#include "base/own_cache.h"
#include "models/short_run.h"
#include "run/program_events.h"
#include "simulated/simulated.h"
#include "simulated/simulated_metal.h"

namespace shunt::models {
namespace {

class SimulatedModel : public testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { EXPECT_EQ(live_objects(), before_); }

  static constexpr SessionOptions kOptions{.context = 64, .max_sequences = 2};

 private:
  static std::uint64_t live_objects() {
    return simulated::Simulation::control().live_objects() + simulated::MetalSimulation::control().live_objects();
  }

  simulated::Simulation cuda_and_hip_;
  simulated::MetalSimulation metal_;
  std::uint64_t before_ = live_objects();
};

TEST_P(SimulatedModel, GivesTheReferenceTokens) {
  const Loaded loaded(kTrainedModel, GetParam(), kOptions);
  const std::vector<std::vector<Token>> tokens = short_run(*loaded.session);
  for (std::size_t prompt = 0; prompt < tokens.size(); ++prompt) {
    auto expected = reference()["prompts"][prompt]["greedy_ids"].get<std::vector<Token>>();
    expected.resize(kShortRunTokens);
    EXPECT_EQ(tokens[prompt], expected);
  }
}

TEST_P(SimulatedModel, ComputesWhatTheScalarCpuComputesFromBlocks) {
  const Loaded loaded(kQuantizedModel, GetParam(), kOptions);
  expect_the_scalar_devices_run(*loaded.session, kQuantizedModel);
}

TEST_P(SimulatedModel, ComputesExpertsWithoutTheCpu) {
  const std::string path = SHUNT_TEST_DATA "/architectures/gpt-oss.gguf";
  const std::vector<Token> text = {1, 2, 3, 5, 8, 13};
  const Loaded loaded(path, GetParam(), kOptions);
  const Loaded exact(path, "cpu:scalar", kOptions);
  expect_like(last_logits(*loaded.session, text, text.size()), last_logits(*exact.session, text, text.size()));
}

TEST_P(SimulatedModel, HasItsProgramsInTraces) { test::expect_program_events(GetParam()); }

TEST_P(SimulatedModel, HasItsOpsInTraces) { test::expect_op_events(GetParam()); }

// Its cache does not know the driver with one GPU.
class SimulatedModelOnTwoGpus : public test::OwnCache {};

TEST_F(SimulatedModelOnTwoGpus, GivesTheReferenceTokensWithLayersInTurn) {
  const simulated::Variable gpus("SHUNT_SIMULATED_GPUS", "2");
  const simulated::Simulation simulation;
  const Loaded loaded(kTrainedModel, "cuda:0,cuda:1",
                      {.context = 64, .max_sequences = 2, .strategy = Strategy::layers});
  const auto plan = loaded.session->plan_for(1, 1);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_NE(std::ranges::count((*plan)->steps, shunt::Step::Kind::transfer, &shunt::Step::kind), 0);
  const std::vector<std::vector<Token>> tokens = short_run(*loaded.session);
  for (std::size_t prompt = 0; prompt < tokens.size(); ++prompt) {
    auto expected = reference()["prompts"][prompt]["greedy_ids"].get<std::vector<Token>>();
    expected.resize(kShortRunTokens);
    EXPECT_EQ(tokens[prompt], expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SimulatedModel, testing::Values("cuda:0", "hip:0", "metal:0"), [](const auto& test) {
  const std::string id = test.param;
  return id.substr(0, id.find(':'));
});

}  // namespace
}  // namespace shunt::models
