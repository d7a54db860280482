#include "models/blocks.h"

#include <fmt/format.h>

#include <cmath>

namespace shunt::models {

StepBuilder::StepBuilder(const ModelConfig& config, const WeightSource& weights, const StepShape& shape)
    : config_(config), shape_(shape) {
  for (const WeightInfo& info : weights.weights()) weights_.emplace(info.name, &info);
  tokens_ = graph_.input("tokens", DType::I32, {shape.tokens}, Extent::tokens);
  positions_ = graph_.input("positions", DType::I32, {shape.tokens}, Extent::tokens);
  sequences_ = graph_.input("sequences", DType::I32, {shape.tokens}, Extent::tokens);
  pages_ = graph_.input("pages", DType::I32, {shape.sequences, shape.pages_per_sequence});
  output_rows_ = graph_.input("output_rows", DType::I32, {shape.outputs}, Extent::outputs);
}

// read_config() has checked that every weight of the architecture is there.
Tensor StepBuilder::weight(const std::string& name) {
  const auto place = weights_.find(name);
  return place == weights_.end() ? Tensor{} : graph_.weight(name, place->second->dtype, place->second->shape);
}

Tensor StepBuilder::layer_weight(std::string_view name) { return weight(fmt::format("{}{}.weight", layer_, name)); }

void StepBuilder::begin_layer(std::uint32_t index) {
  layer_index_ = index;
  layer_ = fmt::format("blk.{}.", index);
  graph_.prefix(layer_);
}

Tensor StepBuilder::embed() { return graph_.gather(weight("token_embd.weight"), tokens_); }

Tensor StepBuilder::norm(Tensor x, std::string_view name) {
  return graph_.rms_norm_mul(x, layer_.empty() ? weight(fmt::format("{}.weight", name)) : layer_weight(name),
                             {{Attr::epsilon, config_.norm_epsilon}});
}

Tensor StepBuilder::self_attention(Tensor x, Tensor residual) {
  const std::uint32_t head_dim = config_.head_dim;
  const auto heads = [&](Tensor projected, std::uint32_t count) {
    return graph_.reshape(projected, {{Attr::dims, Shape{shape_.tokens, count, head_dim}}});
  };
  const Attributes rotation{{Attr::rotary_dims, config_.rotary_dims}, {Attr::rotary_base, config_.rotary_base}};
  const Shape cache{shape_.pages, shape_.page_tokens, config_.kv_heads, head_dim};
  const Tensor old_keys = graph_.state(fmt::format("cache.{}.keys", layer_index_), shape_.cache_dtype, cache);
  const Tensor old_values = graph_.state(fmt::format("cache.{}.values", layer_index_), shape_.cache_dtype, cache);

  const Tensor query =
      graph_.rotary(heads(graph_.matmul(x, layer_weight("attn_q")), config_.heads), positions_, {}, rotation);
  const Tensor keys =
      graph_.rotary_cache_write(old_keys, heads(graph_.matmul(x, layer_weight("attn_k")), config_.kv_heads), positions_,
                                sequences_, pages_, rotation);
  const Tensor values = graph_.cache_write(
      old_values, heads(graph_.matmul(x, layer_weight("attn_v")), config_.kv_heads), positions_, sequences_, pages_);
  const Tensor mixed = graph_.attention(query, keys, values, positions_, sequences_, pages_, {},
                                        {{Attr::scale, 1.0F / std::sqrt(static_cast<float>(head_dim))}});
  const Tensor flat = graph_.reshape(mixed, {{Attr::dims, Shape{shape_.tokens, config_.heads * head_dim}}});
  return graph_.matmul_add(flat, layer_weight("attn_output"), residual);
}

Tensor StepBuilder::gated_feed_forward(Tensor x, Tensor residual) {
  const Tensor gate = graph_.matmul(x, layer_weight("ffn_gate"));
  const Tensor up = graph_.matmul(x, layer_weight("ffn_up"));
  return graph_.matmul_add(graph_.swiglu(gate, up), layer_weight("ffn_down"), residual);
}

Tensor StepBuilder::keep_outputs(Tensor x) { return graph_.gather(x, output_rows_); }

Tensor StepBuilder::logits(Tensor x) {
  graph_.prefix("");
  layer_.clear();
  const Tensor normalized = norm(x, "output_norm");
  const Tensor result = graph_.matmul(normalized, weight(config_.tied_output ? "token_embd.weight" : "output.weight"));
  graph_.name(result, "logits");
  return result;
}

Result<Graph> StepBuilder::finish(Tensor output) && {
  graph_.output(output);
  return std::move(graph_).finish();
}

}  // namespace shunt::models
