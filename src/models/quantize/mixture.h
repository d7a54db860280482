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

// Which layers' tensors of a kind get the careful dtype.
enum class Care : std::uint8_t {
  nowhere,
  first_2,
  first_4,
  first_16th,
  first_8th,
  more_bits,  // the first and last eighth and every third layer between
  shared,     // all, where at least four query heads share one of keys and values
};

// The dtypes of one kind of tensor over the layers.
struct Part {
  DType usual;
  DType careful = usual;
  Care care = Care::nowhere;
};

struct Mixture {
  std::string_view name;
  std::uint32_t file_type;  // llama.cpp's number, for general.file_type
  DType base;
  DType output;
  DType embedding;
  Part value;  // attn_v, also fused with queries and keys
  Part down;   // ffn_down, also of experts
  DType attention_output;
  DType experts = base;               // matrices of experts; where it is the base, `down` and all else hold for them
  DType eight_experts_output = base;  // attn_output of a model with eight experts
};

// What of a model its mixture depends on.
struct MixtureModel {
  std::uint32_t layers = 0;
  bool tied = false;               // token_embd is the output matrix as well
  std::uint32_t query_groups = 1;  // heads of queries to each of keys and values
  std::uint32_t experts = 0;
};

[[nodiscard]] std::span<const Mixture> mixtures();
// In any case of letters; Q3_K, Q4_K and Q5_K mean Q3_K_M, Q4_K_M and Q5_K_M. Errors: invalid, with the list of names.
[[nodiscard]] Result<Mixture> mixture_from_name(std::string_view name);
// The name of llama.cpp's file type, or "" where it is none of mixtures().
[[nodiscard]] std::string_view mixture_name(std::uint32_t file_type);

struct Choice {
  DType dtype = DType::F32;
  std::string note{};  // why it is not what the mixture says, or empty
};

// The dtype of one tensor. Norms, vectors, routers and whatever is no weight stay as they are; rows that are not whole
// blocks get the dtype of 32-element blocks that is nearest, or F16.
[[nodiscard]] Choice choose_dtype(const Mixture& mixture, const WeightInfo& tensor, const MixtureModel& model);

}  // namespace shunt::models
