// Qwen 1.5 and 2 with experts: all tokens share one of them, and the weights of the others come from a softmax over all
// of them (Yang et al. 2024, arXiv 2407.10671).
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_qwen2moe(const ConfigReader& reader, ModelConfig& config);

Status configure_qwen2moe(const ConfigReader& reader, ModelConfig& config) {
  config.rotary_halves = true;
  config.attention_biases = true;
  SHUNT_TRY(read_experts(reader, config));
  config.experts.normalized = false;
  SHUNT_TRY_ASSIGN(config.experts.shared_feed_forward,
                   reader.count_or("expert_shared_feed_forward_length", config.feed_forward, 1U << 24U));
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
