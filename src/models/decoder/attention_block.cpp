// The self-attention part of StepBuilder.
#include <fmt/format.h>

#include <utility>

#include "models/decoder/blocks.h"

namespace shunt::models {

StepBuilder::Heads StepBuilder::project_heads(Tensor x) {
  const std::uint32_t query_rows = config_.heads * config_.head_dim;
  const std::uint32_t kv_rows = config_.kv_heads * config_.head_dim;
  Heads result;
  if (config_.fused_qkv) {
    const std::uint32_t heads = config_.heads + 2 * config_.kv_heads;
    const Tensor all = with_heads(
        project(x, "attn_qkv", query_rows + 2 * kv_rows, config_.embedding, config_.attention_biases), heads);
    result = {cut(all, 0, config_.heads), cut(all, config_.heads, config_.kv_heads),
              cut(all, config_.heads + config_.kv_heads, config_.kv_heads)};
  } else {
    const auto projected = [&](std::string_view name, std::uint32_t heads) {
      return with_heads(project(x, name, heads * config_.head_dim, config_.embedding, config_.attention_biases), heads);
    };
    result.query = projected("attn_q", config_.heads);
    result.keys = projected("attn_k", config_.kv_heads);
    result.values = projected("attn_v", config_.kv_heads);
  }
  if (config_.query_key_norm) {
    result.query = norm(result.query, "attn_q_norm", config_.head_dim);
    result.keys = norm(result.keys, "attn_k_norm", config_.head_dim);
  }
  return result;
}

Attributes StepBuilder::rotation() const {
  const bool local = has_window(config_, layer_index_) && config_.local_rotary_base != 0;
  return {{Attr::rotary_dims, config_.rotary_dims},
          {Attr::rotary_base, local ? config_.local_rotary_base : config_.rotary_base},
          {Attr::rotary_halves, config_.rotary_halves ? 1U : 0U}};
}

Tensor StepBuilder::rotary_factors() {
  if (config_.rotary_factors.empty()) return {};
  const std::string layer = std::exchange(layer_, "");
  const Shape shape{config_.rotary_dims / 2};
  Tensor factors = weight(config_.rotary_factors, shape);
  if (!config_.long_rotary_factors.empty()) {
    const Tensor of_long = weight(config_.long_rotary_factors, shape);
    if (std::uint64_t{shape_.pages_per_sequence} * shape_.page_tokens > config_.short_context) factors = of_long;
  }
  layer_ = layer;
  const bool local = has_window(config_, layer_index_) && config_.local_rotary_base != 0;
  return local ? Tensor{} : factors;
}

Tensor StepBuilder::self_attention(Tensor x, Tensor residual) {
  const Heads heads = project_heads(x);
  const Shape cache{shape_.pages, shape_.page_tokens, config_.kv_heads, config_.head_dim};
  const auto [tokens, positions, sequences] = *piece_;
  const auto newest = [&](Tensor state, std::string_view name) {
    return state.id != kNone ? state
                             : graph_.state(fmt::format("cache.{}.{}", layer_index_, name), shape_.cache_dtype, cache);
  };
  auto& [keys, values] = caches_[layer_index_];
  keys = newest(keys, "keys");
  values = newest(values, "values");
  const auto written = [&](Tensor state, Tensor what) {
    return graph_.cache_write(state, what, positions, sequences, pages_);
  };

  const bool rotates = config_.unrotated_every == 0 || (layer_index_ + 1) % config_.unrotated_every != 0;
  const Tensor factors = rotary_factors();
  Tensor query = heads.query;
  if (!rotates) {
    keys = written(keys, heads.keys);
  } else {
    query = graph_.rotary(heads.query, positions, factors, rotation());
    keys = factors.id == kNone ? graph_.rotary_cache_write(keys, heads.keys, positions, sequences, pages_, rotation())
                               : written(keys, graph_.rotary(heads.keys, positions, factors, rotation()));
  }
  values = written(values, heads.values);
  const Tensor sinks = config_.attention_sinks ? weight("attn_sinks.weight", {config_.heads}) : Tensor{};
  const Tensor mixed = graph_.attention(query, keys, values, positions, sequences, pages_, sinks,
                                        {{Attr::scale, config_.attention_scale},
                                         {Attr::soft_cap, config_.attention_soft_cap},
                                         {Attr::window, has_window(config_, layer_index_) ? config_.window : 0U}});
  const std::uint32_t columns = config_.heads * config_.head_dim;
  const Tensor flat = graph_.reshape(mixed, {{Attr::dims, Shape{shape_.tokens / shape_.pieces, columns}}});
  return add_block(flat, "attn_output", columns, config_.output_bias, "post_attention_norm", residual);
}

}  // namespace shunt::models
