// Model architectures: what a file's metadata means, and the graph of one step.
//
// An architecture is one row of architectures.def and one function that describes it in a ModelConfig. blocks.h builds
// the graphs of all architectures. Everything here is a plain value or a free function; safe from many threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/gguf/metadata.h"
#include "shunt/graph.h"
#include "shunt/weights.h"

namespace shunt::models {

enum class Activation : std::uint8_t { silu, gelu, swiglu_oai };

// A mixture of experts that replaces each feed-forward block.
struct ExpertConfig {
  std::uint32_t count = 0;  // 0: none
  std::uint32_t used = 0;   // per token
  std::uint32_t feed_forward = 0;
  std::uint32_t shared_feed_forward = 0;  // of one more expert that all tokens use, with a gate of its own; 0: none
  bool normalized = true;                 // the weights of the experts used sum to one
  bool biases = false;                    // of the router and of the experts
};

// The description of a model. Unless a field says otherwise, its default means that the model lacks the feature.
struct ModelConfig {
  std::string_view architecture;  // a row of architectures.def
  std::uint32_t layers = 0;
  std::uint32_t embedding = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context_length = 0;  // tokens the model was trained on
  float norm_epsilon = 1e-5F;
  bool tied_output = false;  // the embedding is also the output matrix

  // Rotary positions.
  float rotary_base = 10000.0F;
  float local_rotary_base = 0;  // of layers with a window, which then use no factors; 0: as all layers
  std::uint32_t rotary_dims = 0;
  bool rotary_halves = false;
  std::uint32_t unrotated_every = 0;       // layers N - 1, 2N - 1, ... have no rotary positions
  std::string rotary_factors;              // the weight whose elements divide the frequencies
  std::string long_rotary_factors;         // the same for contexts longer than `short_context`
  std::uint32_t short_context = 0;         // tokens
  std::vector<float> made_rotary_factors;  // the contents of the weight kMadeRotaryFactors

  // Attention.
  float attention_scale = 1;
  float attention_soft_cap = 0;
  std::uint32_t window = 0;        // how many positions a token attends to; 0: all
  std::uint32_t global_every = 0;  // layers N - 1, 2N - 1, ... have no window
  bool query_key_norm = false;
  bool attention_biases = false;  // of queries, keys and values
  bool output_bias = false;       // of the output of attention
  bool attention_sinks = false;
  bool fused_qkv = false;

  // The rest of a layer.
  Activation activation = Activation::silu;
  std::string_view feed_forward_norm = "ffn_norm";
  bool fused_gate_up = false;
  bool post_norms = false;  // on what a block adds
  ExpertConfig experts;
  float embedding_scale = 1;
  float residual_scale = 1;
  float logit_divisor = 1;
  float logit_soft_cap = 0;
};

// A computed weight that no file has; ModelWeights (models/model_weights.h) serves it.
inline constexpr std::string_view kMadeRotaryFactors = "rotary_factors.made";

// True if the tokens of that layer attend to a window only.
[[nodiscard]] bool has_window(const ModelConfig& config, std::uint32_t layer);

// Errors: unsupported for an unknown architecture, with the list of known ones, and for tensors that the architecture
// does not use; invalid for keys or tensors that are missing or contradict each other.
[[nodiscard]] Result<ModelConfig> read_config(const Metadata& metadata, const WeightSource& weights);

// How many of the likeliest tokens a step finds, so that a session need not read all logits to choose one.
inline constexpr std::uint32_t kCandidates = 64;

// The capacities that a step's graph is built for.
struct StepShape {
  std::uint32_t tokens = 1;              // bucket of tokens
  std::uint32_t outputs = 1;             // bucket of rows of logits
  std::uint32_t sequences = 1;           // rows of the page table
  std::uint32_t pages_per_sequence = 1;  // columns of the page table
  std::uint32_t pages = 1;               // of the cache
  std::uint32_t page_tokens = 1;
  DType cache_dtype = DType::F16;
  // Each block computes so many equal parts of the tokens in turn, so that only one of them needs memory for values
  // between its ops. A step in several pieces has exactly `tokens` tokens.
  std::uint32_t pieces = 1;
  // Whether a piece passes all layers before the next begins, so that devices compute different ones at the same time.
  // Otherwise a layer computes all pieces before the next layer begins, so that its weights are needed only once.
  bool by_piece = false;
  friend bool operator==(const StepShape&, const StepShape&) = default;
};

// The session writes these tensors of the graph before each step:
//   "tokens", "positions" and "sequences" (row in the page table), each I32 [tokens / pieces], for the first piece;
//     for the others under the names that input_of_piece() gives,
//   "pages" I32 [sequences, pages_per_sequence], "output_rows" I32 [outputs]: which tokens want logits.
// Output 0 is F32 [outputs, vocabulary], output 1 the best kCandidates of each row, as top_values finds them. The state
// is "cache.N.keys" and "cache.N.values", [pages, page_tokens, kv_heads, head_dim].
[[nodiscard]] Result<Graph> build_step(const ModelConfig& config, const WeightSource& weights, const StepShape& shape);
// Returns the name of the input "tokens", "positions" or "sequences" of a piece.
[[nodiscard]] std::string input_of_piece(std::string_view name, std::uint32_t piece);

// Bytes of one page of `page_tokens` tokens in the caches of all layers.
[[nodiscard]] std::uint64_t cache_page_bytes(const ModelConfig& config, std::uint32_t page_tokens, DType dtype);

}  // namespace shunt::models
