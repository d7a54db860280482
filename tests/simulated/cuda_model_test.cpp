// The trained model on the simulated CUDA and HIP devices: the tokens of Hugging Face transformers.
#include <algorithm>

#include "models/generate.h"
#include "models/gguf_bytes.h"
#include "models/quantizer.h"
#include "models/reference.h"
#include "simulated/simulated.h"

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

class SimulatedModel : public testing::TestWithParam<const char*> {};

TEST_P(SimulatedModel, GivesTheReferenceTokens) {
  const simulated::Simulation simulation;
  for (const std::size_t prompt : {std::size_t{0}, std::size_t{1}}) {
    auto expected = reference()["prompts"][prompt]["greedy_ids"].get<std::vector<Token>>();
    expected.resize(kTokens);
    EXPECT_EQ(generate(kTrainedModel, GetParam(), prompt), expected);
  }
}

TEST_P(SimulatedModel, GivesTheTokensOfTheCpuWithBlocks) {
  const simulated::Simulation simulation;
  TestFolder folder;
  const std::string path = folder.file("q8_0");
  const Status written = quantize_file(kTrainedModel, path, "Q8_0");
  ASSERT_TRUE(written.has_value()) << written.error().message;
  for (const std::size_t prompt : {std::size_t{0}, std::size_t{1}})
    EXPECT_EQ(generate(path, GetParam(), prompt), generate(path, "cpu:scalar", prompt));
}

INSTANTIATE_TEST_SUITE_P(Devices, SimulatedModel, testing::Values("cuda:0", "hip:0"),
                         [](const auto& test) { return std::string(test.param).substr(0, 3); });

}  // namespace
}  // namespace shunt::models
