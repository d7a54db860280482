// Llama 1 to 3 and models of the same structure, most of which call themselves "llama" in files: Mistral, SmolLM, and
// Mixtral with its experts (Touvron et al. 2023, arXiv 2302.13971; Jiang et al. 2024, arXiv 2401.04088). Rows of
// queries and keys are stored in pairs.
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_llama(const ConfigReader& reader, ModelConfig& config);

Status configure_llama(const ConfigReader& reader, ModelConfig& config) {
  read_optional_biases(reader, config);
  SHUNT_TRY(read_experts(reader, config));
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
