// The trained model on every device that is not a CPU's: two prompts of eight tokens.
#include "devices/each_api.h"
#include "models/reference.h"

namespace shunt::models {
namespace {

constexpr std::size_t kPrompts = 2;
constexpr std::size_t kTokens = 8;

class DeviceModel : public test::EachApi {
 protected:
  // The reference's prompts with the fewest tokens: slow devices are many.
  static std::vector<nlohmann::json> prompts() {
    std::vector<nlohmann::json> all = reference()["prompts"].get<std::vector<nlohmann::json>>();
    std::ranges::stable_sort(all, {}, [](const nlohmann::json& prompt) { return prompt["ids"].size(); });
    all.resize(kPrompts);
    return all;
  }

  static double normalized_error(std::span<const float> actual, std::span<const float> expected) {
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      error += (double{actual[i]} - expected[i]) * (double{actual[i]} - expected[i]);
      size += double{expected[i]} * expected[i];
    }
    return error / size;
  }

  // Greedy tokens and teacher-forced logits against cpu:scalar on the same file.
  static void expect_the_scalar_result(const std::string& file, const std::string& device) {
    SCOPED_TRACE(device + " on " + file);
    constexpr SessionOptions kOptions{.context = 128};
    const Loaded there(file, device, kOptions);
    const Loaded exact(file, "cpu:scalar", kOptions);
    const std::size_t vocabulary = exact.model->config().vocabulary;
    for (const nlohmann::json& prompt : prompts()) {
      SCOPED_TRACE(prompt["text"].get<std::string>());
      auto tokens = prompt["ids"].get<std::vector<Token>>();
      const std::vector<Token> expected = greedy(*exact.session, tokens);
      EXPECT_EQ(greedy(*there.session, tokens), expected);
      tokens.insert(tokens.end(), expected.begin(), expected.end() - 1);
      const auto actual_rows = last_logits(*there.session, tokens, kTokens);
      const auto exact_rows = last_logits(*exact.session, tokens, kTokens);
      ASSERT_EQ(actual_rows.size(), kTokens * vocabulary);
      EXPECT_LT(normalized_error(actual_rows, exact_rows), 1e-4);
    }
  }

 private:
  static std::vector<Token> greedy(Session& session, const std::vector<Token>& prompt) {
    session.truncate(0, 0);
    std::vector<Token> made;
    std::vector<Token> next = prompt;
    while (made.size() < kTokens) {
      const Status done = session.append(0, next);
      EXPECT_TRUE(done.has_value()) << done.error().message;
      if (!done) break;
      const auto logits = session.logits(0);
      next = {static_cast<Token>(std::ranges::max_element(logits) - logits.begin())};
      made.push_back(next.front());
    }
    return made;
  }
};

TEST_P(DeviceModel, SaysWhatTheScalarCpuSaysFromF16) {
  for (const Device* device : devices_) expect_the_scalar_result(kTrainedModel, device->info().id);
}

TEST_P(DeviceModel, SaysWhatTheScalarCpuSaysFromQ8) {
  for (const Device* device : devices_)
    expect_the_scalar_result(SHUNT_TEST_DATA "/../../models/tiny-llama-q8_0.gguf", device->info().id);
}

SHUNT_FOR_EACH_API(DeviceModel);

}  // namespace
}  // namespace shunt::models
