#include "models/quantize/mixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/nearest.h"
#include "models/gguf/gguf_parse.h"

namespace shunt::models {
namespace {

using enum DType;

constexpr Mixture plain(std::string_view name, std::uint32_t file_type, DType dtype) {
  return {name, file_type, dtype, dtype, dtype, {dtype}, {dtype}, dtype};
}
// The same dtype everywhere, but a more precise output matrix.
constexpr Mixture even(std::string_view name, std::uint32_t file_type, DType dtype) {
  return {name, file_type, dtype, Q6_K, dtype, {dtype}, {dtype}, dtype};
}

// The types with uneven levels.
constexpr Mixture uneven(std::string_view name, std::uint32_t file_type, DType dtype) {
  return {name,  file_type, dtype, Q6_K, dtype, {dtype, Q5_K, Care::shared}, {dtype, Q5_K, Care::first_8th},
          dtype, dtype,     Q5_K};
}

constexpr Mixture kMixtures[] = {
    plain("F32", 0, F32),
    plain("F16", 1, F16),
    plain("BF16", 32, BF16),
    plain("Q8_0", 7, Q8_0),
    even("Q4_0", 2, Q4_0),
    even("Q4_1", 3, Q4_1),
    even("Q5_0", 8, Q5_0),
    even("Q5_1", 9, Q5_1),
    {"Q2_K", 10, Q2_K, Q6_K, Q2_K, {Q3_K, Q4_K, Care::shared}, {Q3_K}, Q3_K, Q2_K, Q5_K},
    {"Q3_K_S", 11, Q3_K, Q6_K, Q3_K, {Q3_K}, {Q3_K}, Q3_K, Q3_K, Q5_K},
    {"Q3_K_M", 12, Q3_K, Q6_K, Q3_K, {Q4_K, Q5_K, Care::first_2}, {Q4_K, Q5_K, Care::first_16th}, Q4_K, Q3_K, Q5_K},
    {"Q3_K_L", 13, Q3_K, Q6_K, Q3_K, {Q5_K}, {Q5_K}, Q5_K, Q3_K, Q3_K},
    {"Q4_K_S", 14, Q4_K, Q6_K, Q4_K, {Q4_K, Q5_K, Care::first_4}, {Q4_K, Q5_K, Care::first_8th}, Q4_K, Q4_K, Q5_K},
    {"Q4_K_M", 15, Q4_K, Q6_K, Q4_K, {Q4_K, Q6_K, Care::more_bits}, {Q4_K, Q6_K, Care::more_bits}, Q4_K, Q4_K, Q5_K},
    even("Q5_K_S", 16, Q5_K),
    {"Q5_K_M", 17, Q5_K, Q6_K, Q5_K, {Q5_K, Q6_K, Care::more_bits}, {Q5_K, Q6_K, Care::more_bits}, Q5_K},
    even("Q6_K", 18, Q6_K),
    uneven("IQ4_NL", 25, IQ4_NL),
    uneven("IQ4_XS", 30, IQ4_XS),
    {"MXFP4_MOE", 38, Q8_0, Q8_0, Q8_0, {Q8_0}, {Q8_0}, Q8_0, MXFP4},
    // llama.cpp has no file type for dense models in MXFP4, and so no number for one.
    {"MXFP4", 38, MXFP4, Q8_0, MXFP4, {MXFP4}, {MXFP4}, MXFP4},
};

bool is_careful(Care care, std::uint32_t layer, const MixtureModel& model) {
  const std::uint32_t layers = model.layers;
  switch (care) {
    case Care::nowhere:
      return false;
    case Care::first_2:
      return layer < 2;
    case Care::first_4:
      return layer < 4;
    case Care::first_16th:
      return layer < layers / 16;
    case Care::first_8th:
      return layer < layers / 8;
    case Care::more_bits:
      return layer < layers / 8 || layer >= std::uint64_t{7} * layers / 8 || (layer - layers / 8) % 3 == 2;
    case Care::shared:
      return model.query_groups >= 4;
  }
  return false;
}

bool is_converted(const WeightInfo& tensor) {
  return tensor.shape.rank() >= 2 && tensor.name.ends_with(".weight") &&
         tensor.name.find("_norm.") == std::string::npos && tensor.name.find("ffn_gate_inp.") == std::string::npos &&
         info_of(tensor.dtype).kind != DTypeKind::integer;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

DType wanted_dtype(const Mixture& mixture, const WeightInfo& tensor, const MixtureModel& model) {
  const std::string_view name = tensor.name;
  if (name == "output.weight" || (model.tied && name == "token_embd.weight")) return mixture.output;
  if (name == "token_embd.weight") return mixture.embedding;
  if (tensor.shape.rank() == 3 && mixture.experts != mixture.base) return mixture.experts;
  // The matrices that all tokens share are small compared with eight experts.
  const bool spares_shared = model.experts == 8 && info_of(mixture.base).kind == DTypeKind::quantized;
  const auto choose = [&](const Part& part) {
    const std::optional<std::uint32_t> layer = layer_of(name);
    return layer && is_careful(part.care, *layer, model) ? part.careful : part.usual;
  };
  if (is_one_of(name, {".attn_v.", ".attn_qkv.", ".attn_kv_b."})) return spares_shared ? Q8_0 : choose(mixture.value);
  if (is_one_of(name, {".attn_k."})) return spares_shared ? Q8_0 : mixture.base;
  if (is_one_of(name, {".ffn_down"})) return choose(mixture.down);
  if (is_one_of(name, {".attn_output."}))
    return model.experts == 8 ? mixture.eight_experts_output : mixture.attention_output;
  return mixture.base;
}

// Returns the dtype to use if a row is not whole blocks of `dtype`.
DType fallback_of(DType dtype, std::uint32_t columns) {
  const DType smaller = [&] {
    switch (dtype) {
      case Q2_K:
      case Q3_K:
      case IQ4_XS:
        return IQ4_NL;
      case Q4_K:
        return Q5_0;
      case Q5_K:
        return Q5_1;
      case Q6_K:
        return Q8_0;
      default:
        return F16;
    }
  }();
  return columns % info_of(smaller).block_elements == 0 ? smaller : F16;
}

}  // namespace

std::span<const Mixture> mixtures() { return kMixtures; }

Result<Mixture> mixture_from_name(std::string_view name) {
  const bool means_medium = is_same_word(name, "Q3_K") || is_same_word(name, "Q4_K") || is_same_word(name, "Q5_K");
  const std::string full = means_medium ? fmt::format("{}_M", name) : std::string(name);
  std::vector<std::string_view> names;
  for (const Mixture& mixture : kMixtures) {
    if (is_same_word(mixture.name, full)) return mixture;
    names.push_back(mixture.name);
  }
  return fail(Code::invalid, fmt::format("unknown file type \"{}\"{}; known: {}", name, did_you_mean(name, names),
                                         fmt::join(names, " ")));
}

std::string_view mixture_name(std::uint32_t file_type) {
  for (const Mixture& mixture : kMixtures)
    if (mixture.file_type == file_type) return mixture.name;
  return "";
}

ChosenDType choose_dtype(const Mixture& mixture, const WeightInfo& tensor, const MixtureModel& model) {
  if (!is_converted(tensor)) return {.dtype = tensor.dtype};
  const DType wanted = wanted_dtype(mixture, tensor, model);
  const std::uint32_t columns = tensor.shape.columns();
  if (columns % info_of(wanted).block_elements == 0) return {.dtype = wanted};
  const DType dtype = fallback_of(wanted, columns);
  return {.dtype = dtype,
          .note = fmt::format("{} instead of {}: rows of {} are not whole blocks of {}", name_of(dtype),
                              name_of(wanted), columns, info_of(wanted).block_elements)};
}

}  // namespace shunt::models
