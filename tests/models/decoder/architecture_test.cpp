// A llama model against the same computation written out in double, for settings that no bundled model uses.
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "models/gguf/gguf_bytes.h"
#include "models/gguf/gguf_writer.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "ops/quantize/blocks.h"

namespace shunt::models {
namespace {

using Values = std::vector<double>;

struct Settings {
  const char* shape = "nano";
  float epsilon = 1e-5F;
  float rotary_base = 10000;
  std::uint32_t rotary_dims = 0;  // 0: from the shape
};

std::ostream& operator<<(std::ostream& out, const Settings& settings) {
  return out << settings.shape << " epsilon " << settings.epsilon << " base " << settings.rotary_base << " dims "
             << settings.rotary_dims;
}

// Writes the random model of that shape with these settings, and with norms that are not all ones.
void write_model(const TestFolder& folder, const Settings& settings) {
  ASSERT_TRUE(make_model(settings.shape, "F16", folder.file("plain")).has_value());
  const auto plain = Loaded::take(GgufFile::open(folder.file("plain")));
  Metadata metadata = plain->metadata();
  metadata.set("llama.attention.layer_norm_rms_epsilon", settings.epsilon);
  metadata.set("llama.rope.freq_base", settings.rotary_base);
  if (settings.rotary_dims != 0) metadata.set("llama.rope.dimension_count", settings.rotary_dims);
  std::vector<GgufTensor> tensors;
  std::vector<std::byte> bytes;
  std::mt19937 random(7);
  for (std::size_t i = 0; i < plain->weights().size(); ++i) {
    const WeightInfo& info = plain->weights()[i];
    tensors.push_back({.name = info.name, .dtype = info.dtype, .shape = info.shape});
    const auto data = plain->mapped(i);
    bytes.insert(bytes.end(), data.begin(), data.end());
    if (info.shape.rank() != 1) continue;
    ASSERT_EQ(info.dtype, DType::F32);
    for (std::size_t element = 0; element < info.shape.elements(); ++element) {
      const float value = 0.5F + static_cast<float>(random() % 1000) / 1000;
      std::memcpy(bytes.data() + bytes.size() - info.bytes + element * sizeof value, &value, sizeof value);
    }
  }
  auto writer = Loaded::take(GgufWriter::create(folder.file("m"), metadata, tensors));
  ASSERT_TRUE(writer->write(bytes).has_value());
  ASSERT_TRUE(writer->finish().has_value());
}

// The model of Touvron et al. 2023 (arXiv 2302.13971), token by token, with nothing shared or fused.
class PlainLlama {
 public:
  PlainLlama(GgufFile& file, const Settings& settings) : settings_(settings) {
    for (std::size_t i = 0; i < file.weights().size(); ++i) {
      const WeightInfo& info = file.weights()[i];
      std::vector<float> values(info.shape.elements());
      decode_row(info.dtype, file.mapped(i).data(), values.size(), values.data());
      weights_[info.name] = Values(values.begin(), values.end());
    }
    const auto number = [&](const char* key) { return file.metadata().u32(std::string("llama.") + key).value_or(0); };
    layers_ = number("block_count");
    heads_ = number("attention.head_count");
    kv_heads_ = number("attention.head_count_kv");
    head_dim_ = number("attention.key_length");
    width_ = number("embedding_length");
    if (settings_.rotary_dims == 0) settings_.rotary_dims = number("attention.key_length");
    keys_.resize(layers_);
    values_.resize(layers_);
  }

  // Returns the logits after one more token.
  Values next(Token token) {
    const auto embedding = weights_["token_embd.weight"].begin() + token * static_cast<std::ptrdiff_t>(width_);
    Values x(embedding, embedding + static_cast<std::ptrdiff_t>(width_));
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      add(attention(layer, normed(x, prefix + "attn_norm")), x);
      const Values h = normed(x, prefix + "ffn_norm");
      Values gate = times(h, prefix + "ffn_gate");
      const Values up = times(h, prefix + "ffn_up");
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      add(times(gate, prefix + "ffn_down"), x);
    }
    ++position_;
    const bool tied = !weights_.contains("output.weight");
    return times(normed(x, "output_norm"), tied ? "token_embd" : "output");
  }

 private:
  static void add(const Values& more, Values& x) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += more[i];
  }
  Values normed(const Values& x, const std::string& name) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double root = std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(settings_.epsilon));
    Values result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) result[i] = x[i] / root * weights_[name + ".weight"][i];
    return result;
  }
  Values times(const Values& x, const std::string& name) {
    const Values& weight = weights_[name + ".weight"];
    EXPECT_FALSE(weight.empty()) << name;
    Values result(weight.size() / x.size());
    for (std::size_t row = 0; row < result.size(); ++row)
      for (std::size_t i = 0; i < x.size(); ++i) result[row] += weight[row * x.size() + i] * x[i];
    return result;
  }
  // Rotates the pairs (2i, 2i+1) of the leading elements of each head.
  void rotate(Values& x) const {
    for (std::size_t begin = 0; begin < x.size(); begin += head_dim_)
      for (std::size_t i = 0; i < settings_.rotary_dims; i += 2) {
        const double exponent = -static_cast<double>(i) / settings_.rotary_dims;
        const double angle = position_ * std::pow(static_cast<double>(settings_.rotary_base), exponent);
        const double a = x[begin + i];
        const double b = x[begin + i + 1];
        x[begin + i] = a * std::cos(angle) - b * std::sin(angle);
        x[begin + i + 1] = a * std::sin(angle) + b * std::cos(angle);
      }
  }
  Values attention(std::size_t layer, const Values& x) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    Values query = times(x, prefix + "attn_q");
    Values key = times(x, prefix + "attn_k");
    rotate(query);
    rotate(key);
    keys_[layer].push_back(key);
    values_[layer].push_back(times(x, prefix + "attn_v"));
    Values mixed(query.size());
    for (std::size_t head = 0; head < heads_; ++head) {
      const std::size_t shared = head / (heads_ / kv_heads_) * head_dim_;
      double total = 0;
      for (std::size_t seen = 0; seen < keys_[layer].size(); ++seen) {
        double score = 0;
        for (std::size_t i = 0; i < head_dim_; ++i)
          score += query[head * head_dim_ + i] * keys_[layer][seen][shared + i];
        const double weight = std::exp(score / std::sqrt(static_cast<double>(head_dim_)));
        total += weight;
        for (std::size_t i = 0; i < head_dim_; ++i)
          mixed[head * head_dim_ + i] += weight * values_[layer][seen][shared + i];
      }
      for (std::size_t i = 0; i < head_dim_; ++i) mixed[head * head_dim_ + i] /= total;
    }
    return times(mixed, prefix + "attn_output");
  }

  Settings settings_;
  std::map<std::string, Values> weights_;
  std::size_t layers_ = 0, heads_ = 0, kv_heads_ = 0, head_dim_ = 0, width_ = 0;
  double position_ = 0;
  std::vector<std::vector<Values>> keys_, values_;  // per layer and position
};

class Llama : public testing::TestWithParam<Settings> {};

TEST_P(Llama, IsTheComputationWrittenOut) {
  TestFolder folder;
  write_model(folder, GetParam());
  const auto file = Loaded::take(GgufFile::open(folder.file("m")));
  PlainLlama plain(*file, GetParam());
  const std::vector<Token> tokens = {1, 70, 80, 75, 90, 100, 101, 70, 6, 7, 8};
  Values expected;
  for (const Token token : tokens) {
    const Values logits = plain.next(token);
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  double power = 0;
  for (const double value : expected) power += value * value;
  for (const char* devices : {"cpu:scalar", "cpu:simd"}) {
    Loaded loaded(folder.file("m"), devices, {.context = 64, .cache_dtype = DType::F32});
    const std::vector<float> actual = last_logits(*loaded.session, tokens, tokens.size());
    ASSERT_EQ(actual.size(), expected.size());
    double error = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) error += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    EXPECT_LE(error / power, 1e-10) << devices;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Llama,
    testing::Values(Settings{}, Settings{.epsilon = 0.25F}, Settings{.rotary_base = 50}, Settings{.rotary_dims = 6},
                    Settings{.shape = "micro"},
                    Settings{.shape = "micro", .epsilon = 0.1F, .rotary_base = 5e5F, .rotary_dims = 32}));

}  // namespace
}  // namespace shunt::models
