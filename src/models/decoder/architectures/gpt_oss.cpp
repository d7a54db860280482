// gpt-oss: experts with biases, an activation with limits, attention sinks, and a window in every other layer (OpenAI
// 2025, arXiv 2508.10925).
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_gpt_oss(const ConfigReader& reader, ModelConfig& config);

Status configure_gpt_oss(const ConfigReader& reader, ModelConfig& config) {
  config.rotary_halves = true;
  config.attention_biases = true;
  config.output_bias = true;
  config.attention_sinks = true;
  config.activation = Activation::swiglu_oai;
  config.feed_forward_norm = "post_attention_norm";
  SHUNT_TRY(read_experts(reader, config));
  config.experts.biases = true;
  SHUNT_TRY(read_window(reader, 2, config));
  return read_rotary_scaling(reader, false, config);
}

}  // namespace shunt::models
