// Qwen 2 and 2.5, and the DeepSeek-R1 models distilled into them (Yang et al. 2024, arXiv 2407.10671).
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_qwen2(const ConfigReader& reader, ModelConfig& config);

Status configure_qwen2(const ConfigReader& reader, ModelConfig& config) {
  config.rotary_halves = true;
  config.attention_biases = true;
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
