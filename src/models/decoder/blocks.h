// The blocks of decoders, built with a GraphBuilder as the ModelConfig says.
//
// One StepBuilder builds one graph and borrows its arguments. Each weight is checked at its use; finish() returns the
// error of the first that is missing or has another shape.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/decoder/architecture.h"

namespace shunt::models {

class StepBuilder {
 public:
  StepBuilder(const ModelConfig& config, std::span<const WeightInfo> weights, const StepShape& shape);

  // Builds the whole model -> [outputs, vocabulary].
  Tensor decoder();
  // Names of the weights that the graph uses or, with another context, would use.
  [[nodiscard]] const std::set<std::string, std::less<>>& used() const { return used_; }
  // The outputs are the logits and their best. Errors: invalid for the weights, and those of GraphBuilder.
  [[nodiscard]] Result<Graph> finish(Tensor logits) &&;

 private:
  struct Heads {
    Tensor query, keys, values;  // [tokens, heads, head_dim]
  };
  struct Cache {
    Tensor keys, values;  // the newest versions of a layer's; none before its first block
  };
  struct Piece {
    Tensor tokens, positions, sequences;  // inputs of the graph
  };

  // In the following, [tokens] are those of the piece, as are the rows until keep_outputs().
  // Looks up the token embeddings -> [tokens, embedding].
  Tensor embed();
  // The next blocks belong to layer `index`, with weights "blk.N.NAME".
  void begin_layer(std::uint32_t index);
  // Causal attention over the paged cache; x, residual and the result are [tokens, embedding].
  Tensor self_attention(Tensor x, Tensor residual);
  [[nodiscard]] Heads project_heads(Tensor x);
  Tensor rotated(Tensor x);
  [[nodiscard]] Attributes rotation() const;
  Tensor rotary_factors();
  // x, residual and the result are [rows, embedding].
  Tensor feed_forward(Tensor x, Tensor residual);
  Tensor mixture_of_experts(Tensor x);
  Tensor shared_expert(Tensor x);
  // Multiplies x [rows, 1 or used, columns] by the experts' matrices NAME.weight [count, out, columns] that ids [rows,
  // used] select -> [rows, used, out].
  Tensor apply_experts(Tensor x, std::string_view name, Tensor ids, std::uint32_t out, std::uint32_t columns);
  Tensor activated(Tensor gate, Tensor up);
  // Multiplies hidden [rows, columns] by the matrix `name` and adds it to `residual`, with post_norms and
  // residual_scale.
  Tensor add_block(Tensor hidden, std::string_view name, std::uint32_t columns, bool has_bias,
                   std::string_view post_norm, Tensor residual);
  Tensor add_scaled(Tensor y, std::string_view post_norm, Tensor residual);
  // Keeps only the rows whose logits are wanted: those of all pieces, each [tokens, embedding] -> [outputs, embedding].
  Tensor keep_outputs(std::span<const Tensor> pieces);
  // [outputs, embedding] -> [outputs, vocabulary].
  Tensor logits(Tensor x);

  // Multiplies x [rows, columns] by the matrix NAME.weight [out, columns] and adds NAME.bias if it has one.
  Tensor project(Tensor x, std::string_view name, std::uint32_t out, std::uint32_t columns, bool has_bias);
  // Normalizes the last axis of x with NAME.weight.
  Tensor norm(Tensor x, std::string_view name, std::uint32_t columns);
  // Columns `begin` to `begin + count` of x [rows, columns].
  Tensor cut(Tensor x, std::uint32_t begin, std::uint32_t count);
  Tensor with_heads(Tensor x, std::uint32_t heads);
  // A weight of this layer or, outside of layers, of the model.
  Tensor weight(std::string_view name, const Shape& shape);

  const ModelConfig& config_;
  const StepShape& shape_;
  std::map<std::string, const WeightInfo*, std::less<>> weights_;
  std::set<std::string, std::less<>> used_;
  std::optional<Error> error_;
  GraphBuilder graph_;
  Tensor pages_, output_rows_;
  std::vector<Piece> pieces_;
  std::vector<Cache> caches_;     // by layer
  const Piece* piece_ = nullptr;  // that the next block computes
  std::string layer_;
  std::uint32_t layer_index_ = 0;
};

}  // namespace shunt::models
