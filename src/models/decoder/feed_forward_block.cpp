// The feed-forward part of StepBuilder, dense or with experts.
#include <fmt/format.h>

#include "models/decoder/blocks.h"

namespace shunt::models {

Tensor StepBuilder::activated(Tensor gate, Tensor up) {
  switch (config_.activation) {
    case Activation::silu:
      return graph_.swiglu(gate, up);
    case Activation::gelu:
      return graph_.geglu(gate, up);
    case Activation::swiglu_oai:
      return graph_.swiglu_oai(gate, up);
  }
  return {};
}

Tensor StepBuilder::feed_forward(Tensor x, Tensor residual) {
  if (config_.experts.count != 0) return add_scaled(mixture_of_experts(x), "post_ffw_norm", residual);
  Tensor gate;
  Tensor up;
  if (config_.fused_gate_up) {
    const Tensor both = project(x, "ffn_up", 2 * config_.feed_forward, config_.embedding, false);
    gate = cut(both, 0, config_.feed_forward);
    up = cut(both, config_.feed_forward, config_.feed_forward);
  } else {
    gate = project(x, "ffn_gate", config_.feed_forward, config_.embedding, false);
    up = project(x, "ffn_up", config_.feed_forward, config_.embedding, false);
  }
  return add_block(activated(gate, up), "ffn_down", config_.feed_forward, false, "post_ffw_norm", residual);
}

Tensor StepBuilder::apply_experts(Tensor x, std::string_view name, Tensor ids, std::uint32_t out,
                                  std::uint32_t columns) {
  const std::uint32_t count = config_.experts.count;
  const Tensor bias = config_.experts.biases ? weight(fmt::format("{}.bias", name), {count, out}) : Tensor{};
  return graph_.linear_experts(x, weight(fmt::format("{}.weight", name), {count, out, columns}), ids, {}, bias);
}

Tensor StepBuilder::mixture_of_experts(Tensor x) {
  const ExpertConfig& experts = config_.experts;
  const Tensor scores = project(x, "ffn_gate_inp", experts.count, config_.embedding, experts.biases);
  const Tensor ids = graph_.top_k(scores, {{Attr::k, experts.used}});
  // The softmax over the chosen scores equals the softmax over all, renormalized to sum to one.
  const Tensor weights =
      experts.normalized ? graph_.softmax(graph_.take(scores, ids), {}) : graph_.take(graph_.softmax(scores, {}), ids);
  const Tensor gate = apply_experts(x, "ffn_gate_exps", ids, experts.feed_forward, config_.embedding);
  const Tensor up = apply_experts(x, "ffn_up_exps", ids, experts.feed_forward, config_.embedding);
  const Tensor down = apply_experts(activated(gate, up), "ffn_down_exps", ids, config_.embedding, experts.feed_forward);
  const Tensor sum = graph_.weighted_sum(down, weights);
  return experts.shared_feed_forward == 0 ? sum : graph_.add(sum, shared_expert(x));
}

Tensor StepBuilder::shared_expert(Tensor x) {
  const std::uint32_t columns = config_.experts.shared_feed_forward;
  const Tensor gate = project(x, "ffn_gate_shexp", columns, config_.embedding, false);
  const Tensor up = project(x, "ffn_up_shexp", columns, config_.embedding, false);
  const Tensor y = project(activated(gate, up), "ffn_down_shexp", config_.embedding, columns, false);
  const Tensor share = graph_.sigmoid(project(x, "ffn_gate_inp_shexp", 1, config_.embedding, false));
  const auto rows = static_cast<std::uint32_t>(graph_.shape_of(x).rows());
  return graph_.weighted_sum(graph_.reshape(y, {{Attr::dims, Shape{rows, 1, config_.embedding}}}), share);
}

}  // namespace shunt::models
