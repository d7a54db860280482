// Gemma 2: norms before and after each block, soft caps on scores and logits, a window in every other layer (Gemma Team
// 2024, arXiv 2408.00118). In GGUF files the weights of norms already include the added 1.
#include <cmath>

#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_gemma2(const ConfigReader& reader, ModelConfig& config);

Status configure_gemma2(const ConfigReader& reader, ModelConfig& config) {
  constexpr std::uint32_t kLayersOf27b = 46;  // divides scores by another root, and no key says so
  config.rotary_halves = true;
  config.post_norms = true;
  config.activation = Activation::gelu;
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding));
  if (config.layers == kLayersOf27b)
    config.attention_scale = 1 / std::sqrt(static_cast<float>(config.embedding / config.heads));
  SHUNT_TRY_ASSIGN(config.attention_soft_cap, reader.positive_or("attn_logit_softcapping", 50));
  SHUNT_TRY_ASSIGN(config.logit_soft_cap, reader.positive_or("final_logit_softcapping", 30));
  SHUNT_TRY(read_window(reader, 2, config));
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
