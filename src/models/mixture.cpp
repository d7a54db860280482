#include "models/mixture.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace shunt::models {
namespace {

using enum DType;

constexpr Mixture kMixtures[] = {
    {"F32", 0, F32, F32, F32, F32, Care::nowhere},           {"F16", 1, F16, F16, F16, F16, Care::nowhere},
    {"BF16", 32, BF16, BF16, BF16, BF16, Care::nowhere},     {"Q8_0", 7, Q8_0, Q8_0, Q8_0, Q8_0, Care::nowhere},
    {"Q4_0", 2, Q4_0, Q6_K, Q4_0, Q4_0, Care::nowhere},      {"Q4_K_S", 14, Q4_K, Q6_K, Q6_K, Q5_K, Care::first_layers},
    {"Q4_K_M", 15, Q4_K, Q6_K, Q6_K, Q6_K, Care::more_bits}, {"Q5_K_S", 16, Q5_K, Q6_K, Q6_K, Q5_K, Care::nowhere},
    {"Q5_K_M", 17, Q5_K, Q6_K, Q6_K, Q6_K, Care::more_bits}, {"Q6_K", 18, Q6_K, Q6_K, Q6_K, Q6_K, Care::nowhere},
};

// "blk.12.ffn_down.weight" -> 12.
std::optional<std::uint32_t> layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint32_t layer = 0;
  const auto result = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  if (result.ec != std::errc() || result.ptr == name.data() + name.size() || *result.ptr != '.') return std::nullopt;
  return layer;
}

bool is_careful(Care care, bool is_value, std::uint32_t layer, std::uint32_t layers) {
  const std::uint32_t eighth = layers / 8;
  switch (care) {
    case Care::nowhere:
      return false;
    case Care::first_layers:
      return layer < (is_value ? 4U : eighth);
    case Care::more_bits:
      return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
  }
  return false;
}

bool is_converted(const WeightInfo& tensor) {
  return tensor.shape.rank() >= 2 && tensor.name.ends_with(".weight") &&
         tensor.name.find("_norm.") == std::string::npos && tensor.name.find("ffn_gate_inp.") == std::string::npos &&
         info_of(tensor.dtype).kind != DTypeKind::integer;
}

DType wanted_dtype(const Mixture& mixture, std::string_view name, std::uint32_t layers, bool tied) {
  if (name == "output.weight" || (tied && name == "token_embd.weight")) return mixture.output;
  if (name == "token_embd.weight") return mixture.embedding;
  const bool is_value = name.ends_with(".attn_v.weight");
  const bool is_down = name.ends_with(".ffn_down.weight") || name.ends_with(".ffn_down_exps.weight");
  const std::optional<std::uint32_t> layer = layer_of(name);
  const bool careful = (is_value || is_down) && layer && is_careful(mixture.care, is_value, *layer, layers);
  return careful ? mixture.careful : mixture.base;
}

}  // namespace

std::span<const Mixture> mixtures() { return kMixtures; }

Result<Mixture> mixture_from_name(std::string_view name) {
  const std::string full = name == "Q4_K" || name == "Q5_K" ? fmt::format("{}_M", name) : std::string(name);
  std::string known;
  for (const Mixture& mixture : kMixtures) {
    if (mixture.name == full) return mixture;
    known += (known.empty() ? "" : " ") + std::string(mixture.name);
  }
  return fail(Code::invalid, fmt::format("unknown file type \"{}\"; known: {}", name, known));
}

std::string_view mixture_name(std::uint32_t file_type) {
  for (const Mixture& mixture : kMixtures)
    if (mixture.file_type == file_type) return mixture.name;
  return "";
}

Choice choose_dtype(const Mixture& mixture, const WeightInfo& tensor, std::uint32_t layers, bool tied) {
  if (!is_converted(tensor)) return {.dtype = tensor.dtype};
  const DType wanted = wanted_dtype(mixture, tensor.name, layers, tied);
  const std::uint32_t columns = tensor.shape.columns();
  for (const DType dtype : {wanted, Q8_0, F16}) {
    if (columns % info_of(dtype).block_elements != 0) continue;
    if (dtype == wanted) return {.dtype = dtype};
    return {.dtype = dtype,
            .note = fmt::format("{} instead of {}: rows of {} are not whole blocks of {}", name_of(dtype),
                                name_of(wanted), columns, info_of(wanted).block_elements)};
  }
  return {.dtype = tensor.dtype};
}

}  // namespace shunt::models
