// Tiny random models of each architecture against Hugging Face transformers: tools/references/architectures.py made the
// files, which have the tokens and the logits that it computed.
#include <algorithm>
#include <cmath>
#include <functional>

#include "models/reference.h"

namespace shunt::models {
namespace {

constexpr const char* kFiles[] = {"llama",      "llama3",  "mistral",  "smollm", "mixtral", "qwen2",
                                  "qwen2moe",   "qwen3",   "qwen3moe", "gemma2", "gemma3",  "phi3",
                                  "phi3-short", "granite", "smollm3",  "gpt-oss"};

std::string path_of(const std::string& name) { return SHUNT_TEST_DATA "/architectures/" + name + ".gguf"; }

// The largest difference of a logit, relative to the largest logit.
double difference(const Model& model, const std::string& devices, DType cache) {
  const auto runtime = Loaded::take(Runtime::create({.threads = 2, .devices = devices}));
  const auto session = Loaded::take(Session::create(model, *runtime, {.context = 64, .cache_dtype = cache}));
  const auto ids = Loaded::take(model.metadata().i32s("shunt.reference.tokens"));
  const auto expected = Loaded::take(model.metadata().f32s("shunt.reference.logits"));
  const auto logits = last_logits(*session, std::vector<Token>(ids.begin(), ids.end()), ids.size());
  EXPECT_EQ(logits.size(), expected.size());
  if (logits.size() != expected.size() || logits.empty()) return 1e9;
  double largest = 0;
  double most = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double apart = std::abs(static_cast<double>(logits[i]) - static_cast<double>(expected[i]));
    if (!(apart <= most)) most = apart;  // also where it is not a number
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return most / largest;
}

class Architectures : public testing::TestWithParam<const char*> {};

TEST_P(Architectures, GiveTheLogitsOfTransformers) {
  const auto model = Loaded::take(Model::load(path_of(GetParam())));
  const double scalar = difference(*model, "cpu:scalar", DType::F32);
  const double simd = difference(*model, "cpu:simd,cpu:scalar", DType::F32);
  EXPECT_LE(scalar, 1e-4);
  EXPECT_LE(simd, 1e-3);
  RecordProperty("scalar", std::to_string(scalar));
  std::printf("%s: cpu:scalar %.1e, cpu:simd %.1e\n", GetParam(), scalar, simd);
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Architectures, testing::ValuesIn(kFiles), test_name);

struct Feature {
  const char* file;
  const char* name;
  std::function<void(ModelConfig&)> switch_off;
};

std::ostream& operator<<(std::ostream& out, const Feature& feature) {
  return out << feature.file << " without " << feature.name;
}

class Features : public testing::TestWithParam<Feature> {};

TEST_P(Features, AreSeenInTheLogits) {
  const auto model = Loaded::take(Model::load(path_of(GetParam().file), GetParam().switch_off));
  EXPECT_GT(difference(*model, "cpu:scalar", DType::F32), 1e-2);
}

const Feature kFeatures[] = {
    {"llama", "attention_biases", [](ModelConfig& config) { config.attention_biases = false; }},
    {"llama", "output_bias", [](ModelConfig& config) { config.output_bias = false; }},
    {"llama3", "frequency_factors", [](ModelConfig& config) { config.rotary_factors.clear(); }},
    {"smollm", "pairs_of_neighbours", [](ModelConfig& config) { config.rotary_halves = true; }},
    {"mixtral", "normalized_experts", [](ModelConfig& config) { config.experts.normalized = false; }},
    {"qwen2", "attention_biases", [](ModelConfig& config) { config.attention_biases = false; }},
    {"qwen2", "pairs_of_halves", [](ModelConfig& config) { config.rotary_halves = false; }},
    {"qwen2moe", "shared_expert", [](ModelConfig& config) { config.experts.shared_feed_forward = 0; }},
    {"qwen2moe", "weights_as_they_are", [](ModelConfig& config) { config.experts.normalized = true; }},
    {"qwen2moe", "second_expert", [](ModelConfig& config) { config.experts.used = 1; }},
    {"qwen3", "query_key_norm", [](ModelConfig& config) { config.query_key_norm = false; }},
    {"gemma2", "window", [](ModelConfig& config) { config.window = 0; }},
    {"gemma2", "layers_without_window", [](ModelConfig& config) { config.global_every = 0; }},
    {"gemma2", "attention_soft_cap", [](ModelConfig& config) { config.attention_soft_cap = 0; }},
    {"gemma2", "logit_soft_cap", [](ModelConfig& config) { config.logit_soft_cap = 0; }},
    {"gemma2", "post_norms", [](ModelConfig& config) { config.post_norms = false; }},
    {"gemma2", "gelu", [](ModelConfig& config) { config.activation = Activation::silu; }},
    {"gemma2", "embedding_scale", [](ModelConfig& config) { config.embedding_scale = 1; }},
    {"gemma3", "local_rotary_base", [](ModelConfig& config) { config.local_rotary_base = 0; }},
    {"gemma3", "linear_scaling", [](ModelConfig& config) { config.rotary_factors.clear(); }},
    {"gemma3", "window", [](ModelConfig& config) { config.window = 0; }},
    {"gemma3", "query_key_norm", [](ModelConfig& config) { config.query_key_norm = false; }},
    {"phi3", "long_factors", [](ModelConfig& config) { config.short_context = config.context_length; }},
    {"phi3", "attention_factor", [](ModelConfig& config) { config.attention_scale = 0.25F; }},
    {"phi3-short", "short_factors", [](ModelConfig& config) { config.short_context = 1; }},
    {"phi3-short", "window", [](ModelConfig& config) { config.window = 0; }},
    {"granite", "embedding_scale", [](ModelConfig& config) { config.embedding_scale = 1; }},
    {"granite", "residual_scale", [](ModelConfig& config) { config.residual_scale = 1; }},
    {"granite", "attention_scale", [](ModelConfig& config) { config.attention_scale = 0.25F; }},
    {"granite", "logit_divisor", [](ModelConfig& config) { config.logit_divisor = 1; }},
    {"smollm3", "layer_without_positions", [](ModelConfig& config) { config.unrotated_every = 0; }},
    {"gpt-oss", "sinks", [](ModelConfig& config) { config.attention_sinks = false; }},
    {"gpt-oss", "biases_of_experts", [](ModelConfig& config) { config.experts.biases = false; }},
    {"gpt-oss", "output_bias", [](ModelConfig& config) { config.output_bias = false; }},
    {"gpt-oss", "window", [](ModelConfig& config) { config.window = 0; }},
    {"gpt-oss", "yarn", [](ModelConfig& config) { config.rotary_factors.clear(); }},
    {"gpt-oss", "activation", [](ModelConfig& config) { config.activation = Activation::silu; }},
};

std::string feature_name(const testing::TestParamInfo<Feature>& info) {
  std::string name = std::string(info.param.file) + "_" + info.param.name;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Features, testing::ValuesIn(kFeatures), feature_name);

}  // namespace
}  // namespace shunt::models
