// Phi 3 and 3.5, and Phi 4 mini: queries, keys and values share one matrix, gate and up another, and there are two sets
// of rotary factors (Abdin et al. 2024, arXiv 2404.14219).
#include "models/decoder/config_reader.h"

namespace shunt::models {

Status configure_phi3(const ConfigReader& reader, ModelConfig& config);

Status configure_phi3(const ConfigReader& reader, ModelConfig& config) {
  config.rotary_halves = true;
  config.fused_qkv = true;
  config.fused_gate_up = true;
  SHUNT_TRY_ASSIGN(const std::uint32_t window, reader.u32_or("attention.sliding_window", 0));  // 0: none
  if (window != 0) SHUNT_TRY(read_window(reader, 0, config));
  return read_rotary_scaling(reader, true, config);
}

}  // namespace shunt::models
