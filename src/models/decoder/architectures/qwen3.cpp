// Qwen 3: queries and keys are normalized head by head (Yang et al. 2025, arXiv 2505.09388).
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_qwen3(const ConfigReader& reader, ModelConfig& config);

Status configure_qwen3(const ConfigReader& reader, ModelConfig& config) {
  config.rotary_halves = true;
  config.query_key_norm = true;
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
