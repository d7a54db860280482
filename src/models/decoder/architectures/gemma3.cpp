// The text part of Gemma 3: as Gemma 2, but with norms of queries and keys instead of soft caps. Five of six layers
// have a window and their own rotary base (Gemma Team 2025, arXiv 2503.19786).
#include <cmath>

#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_gemma3(const ConfigReader& reader, ModelConfig& config);

Status configure_gemma3(const ConfigReader& reader, ModelConfig& config) {
  constexpr std::uint32_t kLayersOf27b = 62;  // as in Gemma 2
  config.rotary_halves = true;
  config.post_norms = true;
  config.query_key_norm = true;
  config.activation = Activation::gelu;
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding));
  if (config.layers == kLayersOf27b)
    config.attention_scale = 1 / std::sqrt(static_cast<float>(config.embedding / config.heads));
  SHUNT_TRY_ASSIGN(config.local_rotary_base, reader.positive_or("rope.freq_base_swa", 10000));
  SHUNT_TRY(read_window(reader, 6, config));
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
