// The blocks that transformer architectures share, over a GraphBuilder. One StepBuilder builds one graph.
#pragma once

#include <map>
#include <string>

#include "models/architecture.h"

namespace shunt::models {

class StepBuilder {
 public:
  StepBuilder(const ModelConfig& config, const WeightSource& weights, const StepShape& shape);

  // Rows of the token embedding -> [tokens, embedding]
  Tensor embed();
  // Normalizes x [rows, embedding] with the weight `name`.
  Tensor norm(Tensor x, std::string_view name);
  // Causal attention over the paged cache with its own projections; adds the result to `residual`.
  //   x, residual [tokens, embedding] -> [tokens, embedding]
  Tensor self_attention(Tensor x, Tensor residual);
  // down(silu(gate(x)) * up(x)) + residual; [rows, embedding] -> the same
  Tensor gated_feed_forward(Tensor x, Tensor residual);
  // Only the rows whose logits are wanted: [tokens, embedding] -> [outputs, embedding]
  Tensor keep_outputs(Tensor x);
  // [outputs, embedding] -> [outputs, vocabulary]
  Tensor logits(Tensor x);

  // Blocks from now on belong to layer `index`: weights "blk.N.NAME".
  void begin_layer(std::uint32_t index);
  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] Result<Graph> finish(Tensor output) &&;

 private:
  Tensor weight(const std::string& name);
  Tensor layer_weight(std::string_view name);

  const ModelConfig& config_;
  const StepShape& shape_;
  std::map<std::string, const WeightInfo*, std::less<>> weights_;
  GraphBuilder graph_;
  Tensor tokens_, positions_, sequences_, pages_, output_rows_;
  std::string layer_;
  std::uint32_t layer_index_ = 0;
};

}  // namespace shunt::models
