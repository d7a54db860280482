// Qwen 3 with experts (Yang et al. 2025, arXiv 2505.09388).
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_qwen3moe(const ConfigReader& reader, ModelConfig& config);

Status configure_qwen3moe(const ConfigReader& reader, ModelConfig& config) {
  config.rotary_halves = true;
  config.query_key_norm = true;
  SHUNT_TRY(read_experts(reader, config));
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
