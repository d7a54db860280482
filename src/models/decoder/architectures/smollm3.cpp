// SmolLM 3: as Llama, but every fourth layer has no rotary positions (https://huggingface.co/blog/smollm3).
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_smollm3(const ConfigReader& reader, ModelConfig& config);

Status configure_smollm3(const ConfigReader& reader, ModelConfig& config) {
  config.unrotated_every = 4;
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
