#include "models/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <vector>

#include "models/blocks.h"

namespace shunt::models {

#define SHUNT_ARCHITECTURE(name) Tensor describe_##name(StepBuilder& step);
#include "models/architectures.def"

namespace {

struct Architecture {
  std::string_view name;
  Tensor (*describe)(StepBuilder& step);
};

constexpr Architecture kArchitectures[] = {
#define SHUNT_ARCHITECTURE(name) {#name, describe_##name},
#include "models/architectures.def"
};

Result<const Architecture*> architecture_named(std::string_view name) {
  std::string known;
  for (const Architecture& row : kArchitectures) {
    if (row.name == name) return &row;
    known += (known.empty() ? "" : " ") + std::string(row.name);
  }
  return fail(Code::unsupported, fmt::format("model architecture \"{}\"; supported: {}", name, known));
}

const WeightInfo* find(const WeightSource& weights, std::string_view name) {
  const auto place = std::ranges::find(weights.weights(), name, &WeightInfo::name);
  return place == weights.weights().end() ? nullptr : &*place;
}

Status need(const WeightSource& weights, const std::string& name, const Shape& shape) {
  const WeightInfo* info = find(weights, name);
  if (info == nullptr) return fail(Code::invalid, fmt::format("the model has no tensor \"{}\"", name));
  if (info->shape != shape)
    return fail(Code::invalid, fmt::format("tensor \"{}\" is {}, the metadata wants {}", name, to_string(info->shape),
                                           to_string(shape)));
  if (info_of(info->dtype).kind == DTypeKind::integer)
    return fail(Code::invalid, fmt::format("tensor \"{}\" is of the integer type {}", name, name_of(info->dtype)));
  return {};
}

struct LayerWeight {
  std::string_view part;  // of the name "blk.N.PART.weight"
  Shape shape;
};

std::vector<LayerWeight> layer_weights(const ModelConfig& config) {
  const std::uint32_t embedding = config.embedding;
  return {{"attn_norm", {embedding}},
          {"attn_q", {config.heads * config.head_dim, embedding}},
          {"attn_k", {config.kv_heads * config.head_dim, embedding}},
          {"attn_v", {config.kv_heads * config.head_dim, embedding}},
          {"attn_output", {embedding, config.heads * config.head_dim}},
          {"ffn_norm", {embedding}},
          {"ffn_gate", {config.feed_forward, embedding}},
          {"ffn_up", {config.feed_forward, embedding}},
          {"ffn_down", {embedding, config.feed_forward}}};
}

// A block with more tensors than these computes something else.
Status check_weights(const ModelConfig& config, const WeightSource& weights) {
  SHUNT_TRY(need(weights, "token_embd.weight", {config.vocabulary, config.embedding}));
  SHUNT_TRY(need(weights, "output_norm.weight", {config.embedding}));
  if (!config.tied_output) SHUNT_TRY(need(weights, "output.weight", {config.vocabulary, config.embedding}));
  const std::vector<LayerWeight> layer = layer_weights(config);
  std::set<std::string, std::less<>> used;
  for (std::uint32_t index = 0; index < config.layers; ++index)
    for (const auto& [part, shape] : layer) {
      const std::string name = fmt::format("blk.{}.{}.weight", index, part);
      SHUNT_TRY(need(weights, name, shape));
      used.insert(name);
    }
  for (const WeightInfo& info : weights.weights()) {
    if (!info.name.starts_with("blk.") || used.contains(info.name)) continue;
    std::string known;
    for (const auto& [part, shape] : layer) known += fmt::format(" {}", part);
    return fail(Code::unsupported, fmt::format("tensor \"{}\"; supported in the {} blocks of this {} model:{}",
                                               info.name, config.layers, config.architecture, known));
  }
  return {};
}

// Limits that keep every product of two of these within 32 bits.
Status check_range(const std::string& key, std::uint32_t value, std::uint32_t most) {
  if (value == 0 || value > most)
    return fail(Code::invalid, fmt::format("metadata key \"{}\" is {}; 1 to {} make sense", key, value, most));
  return {};
}

Status read_sizes(const Metadata& metadata, const std::string& prefix, ModelConfig& config) {
  struct Row {
    const char* key;
    std::uint32_t* value;
    std::uint32_t most;
  };
  for (const Row& row :
       {Row{"block_count", &config.layers, 1U << 12U}, Row{"context_length", &config.context_length, 1U << 28U},
        Row{"embedding_length", &config.embedding, 1U << 20U},
        Row{"feed_forward_length", &config.feed_forward, 1U << 24U},
        Row{"attention.head_count", &config.heads, 1U << 12U}}) {
    SHUNT_TRY_ASSIGN(*row.value, metadata.u32(prefix + row.key));
    SHUNT_TRY(check_range(prefix + row.key, *row.value, row.most));
  }
  SHUNT_TRY_ASSIGN(config.kv_heads, metadata.u32_or(prefix + "attention.head_count_kv", config.heads));
  SHUNT_TRY(check_range(prefix + "attention.head_count_kv", config.kv_heads, config.heads));
  SHUNT_TRY_ASSIGN(config.head_dim, metadata.u32_or(prefix + "attention.key_length", config.embedding / config.heads));
  SHUNT_TRY(check_range(prefix + "attention.key_length", config.head_dim, 1U << 16U));
  SHUNT_TRY_ASSIGN(const std::uint32_t value_dim, metadata.u32_or(prefix + "attention.value_length", config.head_dim));
  SHUNT_TRY_ASSIGN(config.rotary_dims, metadata.u32_or(prefix + "rope.dimension_count", config.head_dim));
  SHUNT_TRY(check_range(prefix + "rope.dimension_count", config.rotary_dims, config.head_dim));
  if (config.heads % config.kv_heads != 0)
    return fail(Code::invalid,
                fmt::format("{} heads do not divide over {} key/value heads", config.heads, config.kv_heads));
  if (value_dim != config.head_dim)
    return fail(Code::unsupported, fmt::format("values of {} elements beside keys of {}", value_dim, config.head_dim));
  if (config.rotary_dims % 2 != 0)
    return fail(Code::invalid, fmt::format("{} rotary dimensions; they come in pairs", config.rotary_dims));
  return {};
}

// What a file may ask for that would change the result and is not there yet.
Status refuse_unknown_features(const Metadata& metadata, const WeightSource& weights, const std::string& prefix) {
  SHUNT_TRY_ASSIGN(const std::string_view scaling, metadata.string_or(prefix + "rope.scaling.type", "none"));
  if (scaling != "none")
    return fail(Code::unsupported,
                fmt::format("rotary scaling \"{}\"; only models without scaling are supported", scaling));
  for (const char* key : {"rope.scaling.factor", "rope.scale_linear"}) {  // 0: not scaled, as is 1
    SHUNT_TRY_ASSIGN(const float factor, metadata.f32_or(prefix + key, 0));
    if (factor != 0 && factor != 1)
      return fail(Code::unsupported,
                  fmt::format("rotary scaling by {} (metadata key \"{}{}\"); only models without scaling are supported",
                              factor, prefix, key));
  }
  SHUNT_TRY_ASSIGN(const std::uint32_t experts, metadata.u32_or(prefix + "expert_count", 0));
  if (experts != 0)
    return fail(Code::unsupported, fmt::format("a mixture of {} experts; only dense models are supported", experts));
  if (find(weights, "rope_freqs.weight") != nullptr)
    return fail(Code::unsupported, "frequency factors (tensor \"rope_freqs.weight\") are not supported");
  for (const WeightInfo& info : weights.weights())
    if (info.name.ends_with(".bias"))
      return fail(Code::unsupported, fmt::format("biases (tensor \"{}\") are not supported", info.name));
  return {};
}

}  // namespace

Result<ModelConfig> read_config(const Metadata& metadata, const WeightSource& weights) {
  SHUNT_TRY_ASSIGN(const std::string_view name, metadata.string("general.architecture"));
  SHUNT_TRY_ASSIGN(const Architecture* architecture, architecture_named(name));
  const std::string prefix = std::string(name) + ".";
  ModelConfig config{.architecture = architecture->name};
  SHUNT_TRY(read_sizes(metadata, prefix, config));
  SHUNT_TRY(refuse_unknown_features(metadata, weights, prefix));
  SHUNT_TRY_ASSIGN(config.norm_epsilon, metadata.f32(prefix + "attention.layer_norm_rms_epsilon"));
  SHUNT_TRY_ASSIGN(config.rotary_base, metadata.f32_or(prefix + "rope.freq_base", 10000.0F));
  if (!(config.norm_epsilon >= 0) || !(config.rotary_base > 0))
    return fail(Code::invalid, fmt::format("norm epsilon {} and rotary base {} must be positive", config.norm_epsilon,
                                           config.rotary_base));
  const WeightInfo* embedding = find(weights, "token_embd.weight");
  if (embedding == nullptr || embedding->shape.rank() != 2)
    return fail(Code::invalid, "the model has no matrix \"token_embd.weight\"");
  config.vocabulary = embedding->shape[0];
  config.tied_output = find(weights, "output.weight") == nullptr;
  SHUNT_TRY(check_weights(config, weights));
  return config;
}

Result<Graph> build_step(const ModelConfig& config, const WeightSource& weights, const StepShape& shape) {
  SHUNT_TRY_ASSIGN(const Architecture* architecture, architecture_named(config.architecture));
  StepBuilder step(config, weights, shape);
  const Tensor output = architecture->describe(step);
  return std::move(step).finish(output);
}

std::uint64_t cache_page_bytes(const ModelConfig& config, std::uint32_t page_tokens, DType dtype) {
  return std::uint64_t{2} * config.layers * page_tokens * config.kv_heads * config.head_dim *
         info_of(dtype).block_bytes;
}

}  // namespace shunt::models
