// Tiny random models of each architecture against Hugging Face transformers. tools/references/architectures.py made the
// files, which contain the tokens and the logits it computed. tools/support.py tabulates what the tests record.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>

#include "models/reference.h"

namespace shunt::models {
namespace {

struct File {
  const char* name;    // in tests/data/architectures
  const char* models;  // models in use that consist of the same parts
};

constexpr File kFiles[] = {
    {"llama", "Llama 1 to 3"},
    {"llama3", "Llama 3.1 and up (`rope_freqs.weight`)"},
    {"mistral", "Mistral 7B"},
    {"smollm", "SmolLM 1 and 2"},
    {"mixtral", "Mixtral"},
    {"qwen2", "Qwen 2, 2.5, models distilled from DeepSeek-R1 into them"},
    {"qwen2moe", "Qwen 1.5 and 2 with experts"},
    {"qwen3", "Qwen 3"},
    {"qwen3moe", "Qwen 3 with experts"},
    {"gemma2", "Gemma 2"},
    {"gemma3", "Gemma 3, text"},
    {"phi3", "Phi 3, 3.5, 4 mini, beyond their original context"},
    {"phi3-short", "the same within it, with a window"},
    {"granite", "Granite 3"},
    {"smollm3", "SmolLM 3"},
    {"gpt-oss", "gpt-oss"},
};

std::ostream& operator<<(std::ostream& out, const File& file) { return out << file.name; }

std::string path_of(const std::string& name) { return SHUNT_TEST_DATA "/architectures/" + name + ".gguf"; }

// The largest error of a logit, relative to the largest logit.
double difference(const Model& model, const std::string& devices, Numerics numerics) {
  const auto runtime = Loaded::take(Runtime::create({.threads = 2, .devices = devices}));
  const SessionOptions options = {.context = 64, .cache_dtype = DType::F32, .numerics = numerics};
  const auto session = Loaded::take(Session::create(model, *runtime, options));
  const auto ids = Loaded::take(model.metadata().i32s("shunt.reference.tokens"));
  const auto expected = Loaded::take(model.metadata().f32s("shunt.reference.logits"));
  const auto logits = last_logits(*session, std::vector<Token>(ids.begin(), ids.end()), ids.size());
  EXPECT_EQ(logits.size(), expected.size());
  if (logits.size() != expected.size() || logits.empty()) return 1e9;
  double largest = 0;
  double most = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double apart = std::abs(static_cast<double>(logits[i]) - static_cast<double>(expected[i]));
    if (!(apart <= most)) most = apart;  // true for NaN too
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return most / largest;
}

class Architectures : public testing::TestWithParam<File> {};

TEST_P(Architectures, GiveTheLogitsOfTransformers) {
  const auto model = Loaded::take(Model::load(path_of(GetParam().name)));
  constexpr const char* kProcessor = "cpu:simd,cpu:scalar";
  const double scalar = difference(*model, "cpu:scalar", Numerics::exact);
  const double simd = difference(*model, kProcessor, Numerics::exact);
  EXPECT_LE(scalar, 1e-4);
  EXPECT_LE(simd, 1e-4);
  // Automatic numerics round as the instructions of the processor require.
  EXPECT_LE(difference(*model, kProcessor, Numerics::automatic), 1e-3);
  const auto text = [](double value) { return (std::ostringstream() << value).str(); };
  RecordProperty("architecture", std::string(model->config().architecture));
  RecordProperty("models", GetParam().models);
  RecordProperty("model_file", GetParam().name);
  RecordProperty("scalar", text(scalar));
  RecordProperty("simd", text(simd));
  std::printf("%s: cpu:scalar %.1e, cpu:simd %.1e\n", GetParam().name, scalar, simd);
}

std::string name_of_file(const testing::TestParamInfo<File>& info) {
  std::string name = info.param.name;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Architectures, testing::ValuesIn(kFiles), name_of_file);

TEST(Architectures, EveryRowOfTheTableHasAFile) {
  std::set<std::string_view> tested;
  for (const File& file : kFiles) tested.insert(Loaded::take(Model::load(path_of(file.name)))->config().architecture);
  const std::set<std::string_view> rows = {
#define SHUNT_ARCHITECTURE(function, name) name,
#include "models/decoder/architectures.def"
  };
  EXPECT_EQ(tested, rows);
}

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
  EXPECT_GT(difference(*model, "cpu:scalar", Numerics::exact), 1e-2);
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
