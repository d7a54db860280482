// The trained model on the simulated Metal device: the tokens of Hugging Face transformers.
#include <algorithm>

#include "models/generate.h"
#include "models/gguf_bytes.h"
#include "models/quantizer.h"
#include "models/reference.h"
#include "simulated/simulated_metal.h"

namespace shunt::models {
namespace {

constexpr std::size_t kTokens = 8;

std::vector<Token> generate(const std::string& model, const std::string& device, std::size_t prompt) {
  Loaded loaded(model, device, {.context = 64});
  std::vector<Token> tokens;
  Status status = loaded.session->append(0, reference()["prompts"][prompt]["ids"].get<std::vector<Token>>());
  while (status && tokens.size() < kTokens) {
    const std::span<const float> logits = loaded.session->logits(0);
    tokens.push_back(static_cast<Token>(std::ranges::max_element(logits) - logits.begin()));
    status = loaded.session->append(0, std::span(&tokens.back(), 1));
  }
  EXPECT_TRUE(status.has_value()) << status.error().message;
  return tokens;
}

TEST(SimulatedMetalModel, GivesTheReferenceTokens) {
  const simulated::MetalSimulation simulation;
  const std::uint64_t before = simulated::MetalSimulation::control().live_objects();
  for (const std::size_t prompt : {std::size_t{0}, std::size_t{1}}) {
    auto expected = reference()["prompts"][prompt]["greedy_ids"].get<std::vector<Token>>();
    expected.resize(kTokens);
    EXPECT_EQ(generate(kTrainedModel, "metal:0", prompt), expected);
  }
  EXPECT_EQ(simulated::MetalSimulation::control().live_objects(), before);
}

TEST(SimulatedMetalModel, GivesTheTokensOfTheCpuWithBlocks) {
  const simulated::MetalSimulation simulation;
  TestFolder folder;
  const std::string path = folder.file("q8_0");
  const Status written = quantize_file(kTrainedModel, path, "Q8_0");
  ASSERT_TRUE(written.has_value()) << written.error().message;
  for (const std::size_t prompt : {std::size_t{0}, std::size_t{1}})
    EXPECT_EQ(generate(path, "metal:0", prompt), generate(path, "cpu:scalar", prompt));
}

}  // namespace
}  // namespace shunt::models
