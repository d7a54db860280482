// Model architectures: what a file's metadata means, and the graph of one step.
//
// An architecture is one row of architectures.def and one function that describes it over the shared blocks of
// blocks.h. Everything here is a plain value or a free function; safe from many threads.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/metadata.h"
#include "shunt/graph.h"
#include "shunt/weights.h"

namespace shunt::models {

struct ModelConfig {
  std::string_view architecture;  // a row of the table
  std::uint32_t layers = 0;
  std::uint32_t embedding = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context_length = 0;  // tokens the model was trained on
  float norm_epsilon = 1e-5F;
  float rotary_base = 10000.0F;
  std::uint32_t rotary_dims = 0;
  bool tied_output = false;  // the embedding is the output matrix too
};

// Errors: unsupported for an unknown architecture, with the list of known ones; invalid where keys or tensors
// are missing or at odds with each other.
[[nodiscard]] Result<ModelConfig> read_config(const Metadata& metadata, const WeightSource& weights);

// The capacities that a step's graph is built for.
struct StepShape {
  std::uint32_t tokens = 1;              // bucket of tokens
  std::uint32_t outputs = 1;             // bucket of rows of logits
  std::uint32_t sequences = 1;           // rows of the page table
  std::uint32_t pages_per_sequence = 1;  // columns of the page table
  std::uint32_t pages = 1;               // of the cache
  std::uint32_t page_tokens = 1;
  DType cache_dtype = DType::F16;
  friend bool operator==(const StepShape&, const StepShape&) = default;
};

// Tensors of the graph that a session writes before each step:
//   "tokens" I32 [tokens], "positions" I32 [tokens], "sequences" I32 [tokens]: row in the page table,
//   "pages" I32 [sequences, pages_per_sequence], "output_rows" I32 [outputs]: which tokens want logits.
// Output 0 is F32 [outputs, vocabulary]. State is "cache.N.keys" and "cache.N.values",
// [pages, page_tokens, kv_heads, head_dim].
[[nodiscard]] Result<Graph> build_step(const ModelConfig& config, const WeightSource& weights, const StepShape& shape);

// Bytes of the whole cache for one page of `page_tokens` tokens, over all layers.
[[nodiscard]] std::uint64_t cache_page_bytes(const ModelConfig& config, std::uint32_t page_tokens, DType dtype);

}  // namespace shunt::models
