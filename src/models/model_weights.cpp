#include "models/model_weights.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt::models {

std::vector<WeightInfo> all_weights(std::span<const WeightInfo> of_file, const ModelConfig& config) {
  std::vector<WeightInfo> weights(of_file.begin(), of_file.end());
  const auto& factors = config.made_rotary_factors;
  if (factors.empty()) return weights;
  weights.push_back({.name = std::string(kMadeRotaryFactors),
                     .dtype = DType::F32,
                     .shape = Shape{static_cast<std::uint32_t>(factors.size())},
                     .bytes = factors.size() * sizeof(float)});
  return weights;
}

ModelWeights::ModelWeights(WeightSource& file, const ModelConfig& config)
    : file_(file), config_(config), weights_(all_weights(file.weights(), config)) {}

Status ModelWeights::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  if (!is_made(index)) return file_.read(index, offset, out);
  if (offset > made().size() || out.size() > made().size() - offset)
    return fail(Code::invalid, fmt::format("{} bytes at {} of tensor \"{}\", which has {}", out.size(), offset,
                                           kMadeRotaryFactors, made().size()));
  std::ranges::copy(made().subspan(offset, out.size()), out.begin());
  return {};
}

std::span<const std::byte> ModelWeights::mapped(std::size_t index) {
  return is_made(index) ? made() : file_.mapped(index);
}

void ModelWeights::fetch(std::size_t index, std::uint64_t offset, std::uint64_t bytes) {
  if (!is_made(index)) file_.fetch(index, offset, bytes);
}

void ModelWeights::release(std::size_t index, std::uint64_t offset, std::uint64_t bytes) {
  if (!is_made(index)) file_.release(index, offset, bytes);
}

}  // namespace shunt::models
