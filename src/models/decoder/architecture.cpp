#include "models/decoder/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/decoder/blocks.h"
#include "models/decoder/config_reader.h"
#include "models/model_weights.h"

namespace shunt::models {

#define SHUNT_ARCHITECTURE(function, name) Status configure_##function(const ConfigReader& reader, ModelConfig& config);
#include "models/decoder/architectures.def"

namespace {

struct Architecture {
  std::string_view name;
  Status (*configure)(const ConfigReader& reader, ModelConfig& config);
};

constexpr Architecture kArchitectures[] = {
#define SHUNT_ARCHITECTURE(function, name) {name, configure_##function},
#include "models/decoder/architectures.def"
};

Result<const Architecture*> architecture_named(std::string_view name) {
  std::string known;
  for (const Architecture& row : kArchitectures) {
    if (row.name == name) return &row;
    known += (known.empty() ? "" : " ") + std::string(row.name);
  }
  return fail(Code::unsupported, fmt::format("model architecture \"{}\" is not supported; supported: {}", name, known));
}

// True if a model that has this tensor would compute something else without it.
bool matters(std::string_view name) {
  return name.starts_with("blk.") || name.starts_with("rope_") || name.ends_with(".bias");
}

Status check_tensors(const ModelConfig& config, const WeightSource& weights) {
  const StepShape smallest;
  const std::vector<WeightInfo> all = all_weights(weights.weights(), config);
  StepBuilder step(config, all, smallest);
  const Tensor logits = step.decoder();
  const std::set<std::string, std::less<>> used = step.used();
  SHUNT_TRY(std::move(step).finish(logits));
  for (const WeightInfo& info : weights.weights()) {
    if (used.contains(info.name) || !matters(info.name)) continue;
    std::string known;
    for (const std::string& name : used)
      if (!name.starts_with("blk.") || name.starts_with("blk.0.")) known += " " + name;
    return fail(Code::unsupported, fmt::format("tensor \"{}\" is not supported; this {} model with {} blocks uses:{}",
                                               info.name, config.architecture, config.layers, known));
  }
  return {};
}

// The limits keep every product of two of these sizes within 32 bits.
Status read_sizes(const ConfigReader& reader, ModelConfig& config) {
  SHUNT_TRY_ASSIGN(config.layers, reader.count("block_count", 1U << 12U));
  SHUNT_TRY_ASSIGN(config.context_length, reader.count("context_length", 1U << 28U));
  SHUNT_TRY_ASSIGN(config.embedding, reader.count("embedding_length", 1U << 20U));
  SHUNT_TRY_ASSIGN(config.feed_forward, reader.count("feed_forward_length", 1U << 24U));
  SHUNT_TRY_ASSIGN(config.heads, reader.count("attention.head_count", 1U << 12U));
  SHUNT_TRY_ASSIGN(config.kv_heads, reader.count_or("attention.head_count_kv", config.heads, config.heads));
  SHUNT_TRY_ASSIGN(config.head_dim,
                   reader.count_or("attention.key_length", config.embedding / config.heads, 1U << 16U));
  SHUNT_TRY_ASSIGN(const std::uint32_t value_dim,
                   reader.count_or("attention.value_length", config.head_dim, 1U << 16U));
  SHUNT_TRY_ASSIGN(config.rotary_dims, reader.count_or("rope.dimension_count", config.head_dim, config.head_dim));
  if (config.heads % config.kv_heads != 0)
    return fail(Code::invalid,
                fmt::format("{} heads cannot be divided among {} key/value heads", config.heads, config.kv_heads));
  if (config.head_dim == 0)
    return fail(Code::invalid, fmt::format("{} heads do not fit into {} elements", config.heads, config.embedding));
  if (value_dim != config.head_dim)
    return fail(Code::unsupported, fmt::format("values have {} elements and keys {}; only equal sizes are supported",
                                               value_dim, config.head_dim));
  if (config.rotary_dims % 2 != 0)
    return fail(Code::invalid, fmt::format("{} rotary dimensions; the number must be even", config.rotary_dims));
  config.attention_scale = 1 / std::sqrt(static_cast<float>(config.head_dim));
  return {};
}

Status read_vocabulary(const WeightSource& weights, ModelConfig& config) {
  const auto embedding = std::ranges::find(weights.weights(), "token_embd.weight", &WeightInfo::name);
  if (embedding == weights.weights().end() || embedding->shape.rank() != 2)
    return fail(Code::invalid, "the model has no matrix \"token_embd.weight\"");
  config.vocabulary = embedding->shape[0];
  return {};
}

}  // namespace

bool has_window(const ModelConfig& config, std::uint32_t layer) {
  return config.window != 0 && (config.global_every == 0 || (layer + 1) % config.global_every != 0);
}

Result<ModelConfig> read_config(const Metadata& metadata, const WeightSource& weights) {
  SHUNT_TRY_ASSIGN(const std::string_view name, metadata.string("general.architecture"));
  SHUNT_TRY_ASSIGN(const Architecture* architecture, architecture_named(name));
  const ConfigReader reader(metadata, weights, name);
  ModelConfig config;
  config.architecture = architecture->name;
  SHUNT_TRY(read_sizes(reader, config));
  SHUNT_TRY_ASSIGN(config.norm_epsilon, reader.f32("attention.layer_norm_rms_epsilon"));
  SHUNT_TRY_ASSIGN(config.rotary_base, reader.f32_or("rope.freq_base", config.rotary_base));
  if (!(config.norm_epsilon >= 0) || !(config.rotary_base > 0))
    return fail(Code::invalid, fmt::format("norm epsilon {} and rotary base {} must be positive", config.norm_epsilon,
                                           config.rotary_base));
  SHUNT_TRY(read_vocabulary(weights, config));
  config.tied_output = !reader.has_tensor("output.weight");
  SHUNT_TRY(architecture->configure(reader, config));
  SHUNT_TRY(check_tensors(config, weights));
  return config;
}

Result<Graph> build_step(const ModelConfig& config, const WeightSource& weights, const StepShape& shape) {
  StepBuilder step(config, weights.weights(), shape);
  const Tensor logits = step.decoder();
  return std::move(step).finish(logits);
}

std::string input_of_piece(std::string_view name, std::uint32_t piece) {
  return piece == 0 ? std::string(name) : fmt::format("{}.{}", name, piece);
}

std::uint64_t cache_page_bytes(const ModelConfig& config, std::uint32_t page_tokens, DType dtype) {
  const DTypeInfo& info = info_of(dtype);
  return std::uint64_t{2} * config.layers * page_tokens * config.kv_heads * config.head_dim / info.block_elements *
         info.block_bytes;
}

}  // namespace shunt::models
