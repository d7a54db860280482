#include "models/decoder/blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt::models {

StepBuilder::StepBuilder(const ModelConfig& config, std::span<const WeightInfo> weights, const StepShape& shape)
    : config_(config), shape_(shape), caches_(config.layers) {
  for (const WeightInfo& info : weights) weights_.emplace(info.name, &info);
  for (std::uint32_t piece = 0; piece < shape.pieces; ++piece) {
    const auto input = [&](std::string_view name) {
      return graph_.input(input_of_piece(name, piece), DType::I32, {shape.tokens / shape.pieces},
                          shape.pieces == 1 ? Extent::tokens : Extent::fixed);
    };
    pieces_.push_back({input("tokens"), input("positions"), input("sequences")});
  }
  pages_ = graph_.input("pages", DType::I32, {shape.sequences, shape.pages_per_sequence});
  output_rows_ = graph_.input("output_rows", DType::I32, {shape.outputs}, Extent::outputs);
}

Tensor StepBuilder::decoder() {
  // All pieces first: the device that looks them up may be the one that ends each piece.
  std::vector<Tensor> xs;
  for (const Piece& piece : pieces_) {
    piece_ = &piece;
    xs.push_back(embed());
  }
  const auto attend = [&](std::uint32_t layer, std::size_t piece) {
    begin_layer(layer);
    piece_ = &pieces_[piece];
    xs[piece] = self_attention(norm(xs[piece], "attn_norm", config_.embedding), xs[piece]);
  };
  const auto feed = [&](Tensor& x) { x = feed_forward(norm(x, config_.feed_forward_norm, config_.embedding), x); };
  const std::uint32_t last = config_.layers - 1;
  if (shape_.by_piece) {
    for (std::size_t piece = 0; piece < xs.size(); ++piece) {
      for (std::uint32_t layer = 0; layer < last; ++layer) {
        attend(layer, piece);
        feed(xs[piece]);
      }
      attend(last, piece);
    }
  } else {
    for (std::uint32_t layer = 0; layer <= last; ++layer) {
      for (std::size_t piece = 0; piece < xs.size(); ++piece) attend(layer, piece);
      if (layer != last) std::ranges::for_each(xs, feed);
    }
  }
  // The rest of the last layer treats each token alone, so it is computed only for tokens that want logits.
  Tensor kept = keep_outputs(xs);
  feed(kept);
  return logits(kept);
}

Result<Graph> StepBuilder::finish(Tensor logits) && {
  if (error_) return std::unexpected(std::move(*error_));
  graph_.output(logits);
  const Tensor candidates = graph_.top_values(logits, {{Attr::k, std::min(kCandidates, config_.vocabulary)}});
  graph_.name(candidates, "candidates");
  graph_.output(candidates);
  return std::move(graph_).finish();
}

Tensor StepBuilder::weight(std::string_view name, const Shape& shape) {
  const std::string full = layer_ + std::string(name);
  used_.insert(full);
  const auto refuse = [&](std::string why) {
    if (!error_) error_ = Error{Code::invalid, std::move(why)};
    return Tensor{};
  };
  const auto place = weights_.find(full);
  if (place == weights_.end()) return refuse(fmt::format("the model has no tensor \"{}\"", full));
  const WeightInfo& info = *place->second;
  if (info.shape != shape)
    return refuse(
        fmt::format("tensor \"{}\" is {}, the metadata wants {}", full, to_string(info.shape), to_string(shape)));
  if (info_of(info.dtype).kind == DTypeKind::integer)
    return refuse(fmt::format("tensor \"{}\" is of the integer type {}", full, name_of(info.dtype)));
  return graph_.weight(full, info.dtype, info.shape);
}

void StepBuilder::begin_layer(std::uint32_t index) {
  layer_index_ = index;
  layer_ = fmt::format("blk.{}.", index);
  graph_.prefix(layer_);
}

Tensor StepBuilder::embed() {
  const Tensor x = graph_.gather(weight("token_embd.weight", {config_.vocabulary, config_.embedding}), piece_->tokens);
  return config_.embedding_scale == 1 ? x : graph_.scale(x, {{Attr::factor, config_.embedding_scale}});
}

Tensor StepBuilder::norm(Tensor x, std::string_view name, std::uint32_t columns) {
  return graph_.rms_norm_mul(x, weight(fmt::format("{}.weight", name), {columns}),
                             {{Attr::epsilon, config_.norm_epsilon}});
}

Tensor StepBuilder::project(Tensor x, std::string_view name, std::uint32_t out, std::uint32_t columns, bool has_bias) {
  const Tensor y = graph_.linear(x, weight(fmt::format("{}.weight", name), {out, columns}));
  return has_bias ? graph_.add(y, weight(fmt::format("{}.bias", name), {out})) : y;
}

Tensor StepBuilder::cut(Tensor x, std::uint32_t begin, std::uint32_t count) {
  return graph_.slice(x, {{Attr::axis, 1U}, {Attr::begin, begin}, {Attr::count, count}});
}

Tensor StepBuilder::with_heads(Tensor x, std::uint32_t heads) {
  return graph_.reshape(x, {{Attr::dims, Shape{shape_.tokens / shape_.pieces, heads, config_.head_dim}}});
}

Tensor StepBuilder::add_block(Tensor hidden, std::string_view name, std::uint32_t columns, bool has_bias,
                              std::string_view post_norm, Tensor residual) {
  if (!has_bias && !config_.post_norms && config_.residual_scale == 1)
    return graph_.linear_add(hidden, weight(fmt::format("{}.weight", name), {config_.embedding, columns}), residual);
  return add_scaled(project(hidden, name, config_.embedding, columns, has_bias), post_norm, residual);
}

Tensor StepBuilder::add_scaled(Tensor y, std::string_view post_norm, Tensor residual) {
  if (config_.post_norms) y = norm(y, post_norm, config_.embedding);
  if (config_.residual_scale != 1) y = graph_.scale(y, {{Attr::factor, config_.residual_scale}});
  return graph_.add(y, residual);
}

Tensor StepBuilder::keep_outputs(std::span<const Tensor> pieces) {
  Tensor all = pieces.front();
  for (const Tensor& piece : pieces.subspan(1)) all = graph_.concat(all, piece, {{Attr::axis, 0U}});
  return graph_.gather(all, output_rows_);
}

Tensor StepBuilder::logits(Tensor x) {
  graph_.prefix("");
  layer_.clear();
  const Tensor normalized = norm(x, "output_norm", config_.embedding);
  Tensor result =
      project(normalized, config_.tied_output ? "token_embd" : "output", config_.vocabulary, config_.embedding, false);
  if (config_.logit_divisor != 1) result = graph_.scale(result, {{Attr::factor, 1 / config_.logit_divisor}});
  if (config_.logit_soft_cap != 0) result = graph_.soft_cap(result, {{Attr::cap, config_.logit_soft_cap}});
  graph_.name(result, "logits");
  return result;
}

}  // namespace shunt::models
