// The weights of a model: those of its file, then those computed from its metadata.
//
// ModelWeights borrows both and must not outlive them. All calls are safe from many threads.
#pragma once

#include <vector>

#include "models/decoder/architecture.h"

namespace shunt::models {

// Returns the weights of the file, then those computed for `config`.
[[nodiscard]] std::vector<WeightInfo> all_weights(std::span<const WeightInfo> of_file, const ModelConfig& config);

class ModelWeights final : public WeightSource {
 public:
  ModelWeights(WeightSource& file, const ModelConfig& config);

  [[nodiscard]] std::span<const WeightInfo> weights() const override { return weights_; }
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t index) override;
  [[nodiscard]] std::shared_ptr<const void> owner(std::size_t index) override {
    return is_made(index) ? nullptr : file_.owner(index);
  }
  void fetch(std::size_t index, std::uint64_t offset, std::uint64_t bytes) override;
  void release(std::size_t index, std::uint64_t offset, std::uint64_t bytes) override;
  [[nodiscard]] Status health() const override { return file_.health(); }

 private:
  [[nodiscard]] bool is_made(std::size_t index) const { return index == file_.weights().size(); }
  [[nodiscard]] std::span<const std::byte> made() const {
    return std::as_bytes(std::span(config_.made_rotary_factors));
  }

  WeightSource& file_;
  const ModelConfig& config_;
  std::vector<WeightInfo> weights_;
};

}  // namespace shunt::models
