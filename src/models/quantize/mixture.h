// The dtype of each tensor in a model file, for the file types that quantize and make-model know by name.
//
// A row gives the dtype of most matrices and the exceptions, as llama.cpp defines the type of that name
// (https://github.com/ggml-org/llama.cpp/blob/master/src/llama-quant.cpp). Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shunt/weights.h"

namespace shunt::models {

// The layers whose tensors of a kind get the careful dtype.
enum class Care : std::uint8_t {
  nowhere,
  first_2,
  first_4,
  first_16th,
  first_8th,
  more_bits,  // the first and last eighth, and every third layer in between
  shared,     // all, if at least four query heads share a head of keys and values
};

// The dtypes of one kind of tensor across the layers.
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
  Part value;  // attn_v, also when fused with queries and keys
  Part down;   // ffn_down, also of experts
  DType attention_output;
  DType experts = base;               // matrices of experts; if this is the base, `down` and the other rules apply
  DType eight_experts_output = base;  // attn_output of a model with eight experts
};

// The properties of a model that its mixture depends on.
struct MixtureModel {
  std::uint32_t layers = 0;
  bool tied = false;               // token_embd is also the output matrix
  std::uint32_t query_groups = 1;  // query heads per head of keys and values
  std::uint32_t experts = 0;
};

[[nodiscard]] std::span<const Mixture> mixtures();
// Ignores case; Q3_K, Q4_K and Q5_K mean Q3_K_M, Q4_K_M and Q5_K_M. Errors: invalid, with the list of names.
[[nodiscard]] Result<Mixture> mixture_from_name(std::string_view name);
// Returns the name of llama.cpp's file type, or "" if mixtures() lacks it.
[[nodiscard]] std::string_view mixture_name(std::uint32_t file_type);

struct ChosenDType {
  DType dtype = DType::F32;
  std::string note{};  // why it differs from the mixture, or empty
};

// Chooses the dtype of one tensor. Norms, vectors, routers and tensors that are not weights keep theirs. Rows that are
// not whole blocks get the nearest dtype with blocks of 32 elements, or F16.
[[nodiscard]] ChosenDType choose_dtype(const Mixture& mixture, const WeightInfo& tensor, const MixtureModel& model);

}  // namespace shunt::models
