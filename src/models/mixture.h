// Which dtype each tensor of a model file gets: the file types that quantize and make-model know, by name.
//
// A row gives the dtype of most matrices and the exceptions, as llama.cpp defines its types of that name
// (https://github.com/ggml-org/llama.cpp/blob/master/src/llama-quant.cpp). Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shunt/weights.h"

namespace shunt::models {

// Where attn_v and ffn_down get the careful dtype instead of the base.
enum class Care : std::uint8_t {
  nowhere,
  first_layers,  // attn_v of the first 4 layers, ffn_down of the first eighth
  more_bits,     // both in the first and last eighth and every third layer between
};

struct Mixture {
  std::string_view name;
  std::uint32_t file_type;  // llama.cpp's number, for general.file_type
  DType base;
  DType output;
  DType embedding;
  DType careful;
  Care care;
};

[[nodiscard]] std::span<const Mixture> mixtures();
// Q4_K and Q5_K mean Q4_K_M and Q5_K_M. Errors: invalid, with the list of names.
[[nodiscard]] Result<Mixture> mixture_from_name(std::string_view name);
// The name of llama.cpp's file type, or "" where it is none of mixtures().
[[nodiscard]] std::string_view mixture_name(std::uint32_t file_type);

struct Choice {
  DType dtype = DType::F32;
  std::string note{};  // why it is not what the mixture says, or empty
};

// The dtype of one tensor of a model with `layers` layers. Norms, vectors, routers and whatever is no weight
// stay as they are; rows that are not whole blocks get Q8_0, or F16.
[[nodiscard]] Choice choose_dtype(const Mixture& mixture, const WeightInfo& tensor, std::uint32_t layers, bool tied);

}  // namespace shunt::models
