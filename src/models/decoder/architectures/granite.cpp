// Granite 3: as Llama, with factors on embeddings, scores, block outputs and logits (IBM,
// https://huggingface.co/docs/transformers/model_doc/granite).
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_granite(const ConfigReader& reader, ModelConfig& config);

Status configure_granite(const ConfigReader& reader, ModelConfig& config) {
  read_optional_biases(reader, config);
  SHUNT_TRY_ASSIGN(config.attention_scale, reader.positive_or("attention.scale", config.attention_scale));
  SHUNT_TRY_ASSIGN(config.embedding_scale, reader.positive_or("embedding_scale", 1));
  SHUNT_TRY_ASSIGN(config.residual_scale, reader.positive_or("residual_scale", 1));
  SHUNT_TRY_ASSIGN(config.logit_divisor, reader.positive_or("logit_scale", 1));
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
