#include "models/decoder/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shunt::models {
namespace {

constexpr std::uint32_t kMostExperts = 1U << 12U;
constexpr std::uint32_t kMostFeedForward = 1U << 24U;
constexpr std::uint32_t kMostContext = 1U << 28U;

// YaRN: pairs that turn less than once within the original context are stretched by `factor`. Pairs that turn often are
// unchanged, with a ramp in between (Peng et al. 2023, arXiv 2309.00071).
struct Yarn {
  float factor = 1;
  float original = 0;  // tokens
  float fast = 32;     // turns
  float slow = 1;
};

std::vector<float> yarn_factors(const Yarn& yarn, const ModelConfig& config, bool whole_pairs) {
  const std::uint32_t pairs = config.rotary_dims / 2;
  const auto pair_that_turns = [&](double turns) {
    return pairs * std::log(static_cast<double>(yarn.original) / (turns * 2 * std::numbers::pi)) /
           std::log(static_cast<double>(config.rotary_base));
  };
  double low = pair_that_turns(static_cast<double>(yarn.fast));
  double high = pair_that_turns(static_cast<double>(yarn.slow));
  if (whole_pairs) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, config.rotary_dims - 1.0);
  if (low == high) high += 0.001;
  std::vector<float> factors;
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    const double stretched = std::clamp((pair - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / (stretched / static_cast<double>(yarn.factor) + 1 - stretched)));
  }
  return factors;
}

// Queries and keys are both multiplied by `factor`, so scores grow by its square.
void magnify(ModelConfig& config, float factor) { config.attention_scale *= factor * factor; }

Status read_yarn(const ConfigReader& reader, float factor, bool whole_pairs, ModelConfig& config) {
  Yarn yarn{.factor = factor};
  SHUNT_TRY_ASSIGN(const std::uint32_t original,
                   reader.count_or("rope.scaling.original_context_length", config.context_length, kMostContext));
  yarn.original = static_cast<float>(original);
  SHUNT_TRY_ASSIGN(yarn.fast, reader.positive_or("rope.scaling.yarn_beta_fast", yarn.fast));
  SHUNT_TRY_ASSIGN(yarn.slow, reader.positive_or("rope.scaling.yarn_beta_slow", yarn.slow));
  SHUNT_TRY_ASSIGN(const float more, reader.positive_or("rope.scaling.attn_factor", 1));
  config.made_rotary_factors = yarn_factors(yarn, config, whole_pairs);
  config.rotary_factors = kMadeRotaryFactors;
  magnify(config, more * (0.1F * std::log(factor) + 1));
  return {};
}

// Uses one set of factors for contexts up to the training length and one for longer ones (Ding et al. 2024, arXiv
// 2402.13753).
Status read_long_rope(const ConfigReader& reader, ModelConfig& config) {
  config.rotary_factors = "rope_factors_short.weight";
  config.long_rotary_factors = "rope_factors_long.weight";
  SHUNT_TRY_ASSIGN(config.short_context,
                   reader.count_or("rope.scaling.original_context_length", config.context_length, kMostContext));
  SHUNT_TRY_ASSIGN(const float more, reader.positive_or("rope.scaling.attn_factor", 1));
  magnify(config, more);
  return {};
}

}  // namespace

bool ConfigReader::has_tensor(std::string_view name) const {
  return std::ranges::find(weights_.weights(), name, &WeightInfo::name) != weights_.weights().end();
}

Result<std::uint32_t> ConfigReader::u32_or(std::string_view key, std::uint32_t fallback) const {
  return metadata_.u32_or(full(key), fallback);
}
Result<float> ConfigReader::f32(std::string_view key) const { return metadata_.f32(full(key)); }
Result<float> ConfigReader::f32_or(std::string_view key, float fallback) const {
  return metadata_.f32_or(full(key), fallback);
}
Result<std::string_view> ConfigReader::string_or(std::string_view key, std::string_view fallback) const {
  return metadata_.string_or(full(key), fallback);
}

Result<std::uint32_t> ConfigReader::count(std::string_view key, std::uint32_t most) const {
  SHUNT_TRY_ASSIGN(const std::uint32_t value, metadata_.u32(full(key)));
  if (value == 0 || value > most)
    return fail(Code::invalid, fmt::format("metadata key \"{}\" is {}; it must be 1 to {}", full(key), value, most));
  return value;
}

Result<std::uint32_t> ConfigReader::count_or(std::string_view key, std::uint32_t fallback, std::uint32_t most) const {
  if (metadata_.find(full(key)) == nullptr) return fallback;
  return count(key, most);
}

Result<float> ConfigReader::positive_or(std::string_view key, float fallback) const {
  SHUNT_TRY_ASSIGN(const float value, metadata_.f32_or(full(key), fallback));
  if (!(value > 0) || !std::isfinite(value))
    return fail(Code::invalid, fmt::format("metadata key \"{}\" is {}; it must be positive", full(key), value));
  return value;
}

void read_optional_biases(const ConfigReader& reader, ModelConfig& config) {
  config.attention_biases = reader.has_tensor("blk.0.attn_q.bias");
  config.output_bias = reader.has_tensor("blk.0.attn_output.bias");
}

Status read_experts(const ConfigReader& reader, ModelConfig& config) {
  ExpertConfig& experts = config.experts;
  SHUNT_TRY_ASSIGN(const std::uint32_t count, reader.u32_or("expert_count", 0));  // dense models may have a 0 here
  if (count == 0) return {};
  SHUNT_TRY_ASSIGN(experts.count, reader.count("expert_count", kMostExperts));
  SHUNT_TRY_ASSIGN(experts.used, reader.count("expert_used_count", experts.count));
  SHUNT_TRY_ASSIGN(experts.feed_forward,
                   reader.count_or("expert_feed_forward_length", config.feed_forward, kMostFeedForward));
  return {};
}

Status read_window(const ConfigReader& reader, std::uint32_t global_every, ModelConfig& config) {
  SHUNT_TRY_ASSIGN(config.window, reader.count("attention.sliding_window", kMostContext));
  config.global_every = global_every;
  return {};
}

Status read_rotary_scaling(const ConfigReader& reader, bool whole_pairs, ModelConfig& config) {
  if (reader.has_tensor("rope_factors_long.weight")) return read_long_rope(reader, config);
  if (reader.has_tensor("rope_freqs.weight")) config.rotary_factors = "rope_freqs.weight";
  SHUNT_TRY_ASSIGN(const std::string_view type, reader.string_or("rope.scaling.type", "none"));
  SHUNT_TRY_ASSIGN(const float older, reader.f32_or("rope.scale_linear", 0));  // 0 and 1: not scaled
  SHUNT_TRY_ASSIGN(float factor, reader.f32_or("rope.scaling.factor", older));
  if (factor == 0) factor = 1;
  if (!(factor > 0) || !std::isfinite(factor))
    return fail(Code::invalid, fmt::format("rotary positions are scaled by {}; the factor must be positive", factor));
  if (type != "none" && type != "linear" && type != "yarn")
    return fail(
        Code::unsupported,
        fmt::format("rotary scaling \"{}\" is not supported; supported: none, linear, yarn, longrope with its tensors",
                    type));
  if (type == "yarn") return read_yarn(reader, factor, whole_pairs, config);
  if (factor == 1) return {};
  config.made_rotary_factors.assign(config.rotary_dims / 2, factor);
  config.rotary_factors = kMadeRotaryFactors;
  return {};
}

}  // namespace shunt::models
