// Reads the configuration of an architecture from a file's keys, without the architecture's prefix, and from the names
// of its tensors. Borrows both; safe from many threads.
#pragma once

#include <string>
#include <string_view>

#include "models/decoder/architecture.h"

namespace shunt::models {

class ConfigReader {
 public:
  ConfigReader(const Metadata& metadata, const WeightSource& weights, std::string_view architecture)
      : metadata_(metadata), weights_(weights), prefix_(std::string(architecture) + ".") {}

  [[nodiscard]] bool has_tensor(std::string_view name) const;

  // Reads `architecture.key` from the file. Errors: invalid for another type, a missing key without a fallback, or a
  // number out of range.
  [[nodiscard]] Result<std::uint32_t> u32_or(std::string_view key, std::uint32_t fallback) const;
  [[nodiscard]] Result<float> f32(std::string_view key) const;
  [[nodiscard]] Result<float> f32_or(std::string_view key, float fallback) const;
  [[nodiscard]] Result<std::string_view> string_or(std::string_view key, std::string_view fallback) const;
  // Reads a number from 1 to `most`.
  [[nodiscard]] Result<std::uint32_t> count(std::string_view key, std::uint32_t most) const;
  [[nodiscard]] Result<std::uint32_t> count_or(std::string_view key, std::uint32_t fallback, std::uint32_t most) const;
  // Reads a finite number above 0.
  [[nodiscard]] Result<float> positive_or(std::string_view key, float fallback) const;

 private:
  [[nodiscard]] std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  const Metadata& metadata_;
  const WeightSource& weights_;
  std::string prefix_;
};

// Parts that several architectures share.
//
// Reads which biases of attention the file has.
void read_optional_biases(const ConfigReader& reader, ModelConfig& config);
// Reads the keys of a mixture of experts; leaves `experts.count` 0 if the file has none.
[[nodiscard]] Status read_experts(const ConfigReader& reader, ModelConfig& config);
// Reads `attention.sliding_window`; layers N - 1, 2N - 1, ... have no window, with N = `global_every`.
[[nodiscard]] Status read_window(const ConfigReader& reader, std::uint32_t global_every, ModelConfig& config);
// Reads how rope.scaling.* and tensors scale the frequencies. `whole_pairs`: YaRN's ramp begins and ends at whole
// pairs.
[[nodiscard]] Status read_rotary_scaling(const ConfigReader& reader, bool whole_pairs, ModelConfig& config);

}  // namespace shunt::models
