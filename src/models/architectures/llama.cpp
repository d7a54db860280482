// Llama 1-3 and everything of their shape (Touvron et al. 2023, arXiv 2302.13971): RMS norm before each block,
// rotary positions on interleaved pairs, grouped-query attention, SwiGLU.
#include "models/blocks.h"

namespace shunt::models {

Tensor describe_llama(StepBuilder& step);

Tensor describe_llama(StepBuilder& step) {
  Tensor x = step.embed();
  for (std::uint32_t layer = 0; layer < step.config().layers; ++layer) {
    step.begin_layer(layer);
    x = step.self_attention(step.norm(x, "attn_norm"), x);
    // What follows in the last layer concerns each token alone, so it is done only where logits are wanted.
    if (layer + 1 == step.config().layers) x = step.keep_outputs(x);
    x = step.gated_feed_forward(step.norm(x, "ffn_norm"), x);
  }
  return step.logits(x);
}

}  // namespace shunt::models
