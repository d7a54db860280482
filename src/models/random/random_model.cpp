#include "models/random/random_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "models/gguf/gguf_writer.h"
#include "models/quantize/mixture.h"
#include "models/random/random_blocks.h"
#include "models/random/random_vocabulary.h"

namespace shunt::models {
namespace {

constexpr ModelShape kShapes[] = {
    // name, architecture, embedding, layers, heads, kv_heads, head_dim, feed_forward, vocabulary, context, tied
    {"nano", "llama", 32, 2, 2, 1, 16, 64, 288, 128, true},
    {"micro", "llama", 256, 2, 4, 2, 64, 512, 512, 512, false},
    {"168m", "llama", 1024, 8, 16, 16, 64, 2816, 32000, 8192, false},
    {"1b", "llama", 2048, 16, 32, 8, 64, 8192, 32000, 8192, false},
    {"3b", "llama", 3072, 28, 24, 8, 128, 8192, 32000, 8192, false},
    {"8b", "llama", 4096, 32, 32, 8, 128, 14336, 32000, 8192, false},
    {"micro-moe", "qwen3moe", 256, 2, 4, 2, 64, 256, 512, 512, false, 16, 4},
    {"moe", "qwen3moe", 2048, 24, 32, 4, 128, 768, 32000, 8192, false, 64, 8},
};

Result<ModelShape> shape_from_name(std::string_view name) {
  std::string known;
  for (const ModelShape& shape : kShapes) {
    if (shape.name == name) return shape;
    known += (known.empty() ? "" : " ") + std::string(shape.name);
  }
  return fail(Code::invalid, fmt::format("unknown model shape \"{}\"; known: {}", name, known));
}

Metadata metadata_of(const ModelShape& shape, const Mixture& mixture) {
  Metadata metadata;
  const auto set = [&](std::string_view key, MetadataValue value) {
    metadata.set(fmt::format("{}.{}", shape.architecture, key), std::move(value));
  };
  metadata.set("general.architecture", std::string(shape.architecture));
  metadata.set("general.name", fmt::format("random {}", shape.name));
  metadata.set("general.file_type", mixture.file_type);
  metadata.set("general.alignment", std::uint32_t{32});
  set("block_count", shape.layers);
  set("context_length", shape.context);
  set("embedding_length", shape.embedding);
  set("feed_forward_length", shape.experts == 0 ? shape.feed_forward : shape.feed_forward * shape.experts_used);
  set("attention.head_count", shape.heads);
  set("attention.head_count_kv", shape.kv_heads);
  set("attention.key_length", shape.head_dim);
  set("attention.value_length", shape.head_dim);
  set("attention.layer_norm_rms_epsilon", 1e-5F);
  set("rope.freq_base", 10000.0F);
  set("rope.dimension_count", shape.head_dim);
  set("vocab_size", shape.vocabulary);
  if (shape.experts != 0) {
    set("expert_count", shape.experts);
    set("expert_used_count", shape.experts_used);
    set("expert_feed_forward_length", shape.feed_forward);
  }
  add_random_vocabulary(shape.vocabulary, metadata);
  metadata.set("general.license", std::string("CC0-1.0"));
  return metadata;
}

std::vector<GgufTensor> tensors_of(const ModelShape& shape) {
  std::vector<GgufTensor> tensors;
  std::string prefix;
  const auto add = [&](std::string_view name, const Shape& extents) {
    tensors.push_back({.name = fmt::format("{}{}.weight", prefix, name), .dtype = DType::F32, .shape = extents});
  };
  add("token_embd", {shape.vocabulary, shape.embedding});
  add("output_norm", {shape.embedding});
  if (!shape.tied) add("output", {shape.vocabulary, shape.embedding});
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    prefix = fmt::format("blk.{}.", layer);
    add("attn_norm", {shape.embedding});
    add("attn_q", {shape.heads * shape.head_dim, shape.embedding});
    add("attn_k", {shape.kv_heads * shape.head_dim, shape.embedding});
    add("attn_v", {shape.kv_heads * shape.head_dim, shape.embedding});
    add("attn_output", {shape.embedding, shape.heads * shape.head_dim});
    if (shape.experts != 0) {
      add("attn_q_norm", {shape.head_dim});
      add("attn_k_norm", {shape.head_dim});
    }
    add("ffn_norm", {shape.embedding});
    if (shape.experts == 0) {
      add("ffn_gate", {shape.feed_forward, shape.embedding});
      add("ffn_up", {shape.feed_forward, shape.embedding});
      add("ffn_down", {shape.embedding, shape.feed_forward});
    } else {
      add("ffn_gate_inp", {shape.experts, shape.embedding});
      add("ffn_gate_exps", {shape.experts, shape.feed_forward, shape.embedding});
      add("ffn_up_exps", {shape.experts, shape.feed_forward, shape.embedding});
      add("ffn_down_exps", {shape.experts, shape.embedding, shape.feed_forward});
    }
  }
  return tensors;
}

// Norms are ones. Matrices preserve the size of their input, so that values do not grow over the layers.
Status write_tensor(GgufWriter& writer, const GgufTensor& tensor, std::uint64_t seed, std::vector<std::byte>& buffer) {
  SHUNT_TRY_ASSIGN(std::uint64_t left, bytes_of(tensor.dtype, tensor.shape));
  if (tensor.shape.rank() == 1) {
    const std::vector<float> ones(tensor.shape.elements(), 1.0F);
    return writer.write(std::as_bytes(std::span(ones)));
  }
  RandomBlocks blocks(tensor.dtype, 1.0F / std::sqrt(static_cast<float>(tensor.shape.columns())), seed);
  const std::uint64_t whole = buffer.size() / info_of(tensor.dtype).block_bytes * info_of(tensor.dtype).block_bytes;
  while (left != 0) {
    const auto piece = std::span(buffer).first(std::min(left, whole));
    blocks.fill(piece);
    SHUNT_TRY(writer.write(piece));
    left -= piece.size();
  }
  return {};
}

}  // namespace

std::span<const ModelShape> model_shapes() { return kShapes; }

Status make_model(std::string_view shape_name, std::string_view type, const std::string& path, std::uint64_t seed,
                  const WriteProgress& progress) {
  SHUNT_TRY_ASSIGN(const ModelShape shape, shape_from_name(shape_name));
  SHUNT_TRY_ASSIGN(const Mixture mixture, mixture_from_name(type));
  std::vector<GgufTensor> tensors = tensors_of(shape);
  const MixtureModel model{.layers = shape.layers,
                           .tied = shape.tied,
                           .query_groups = shape.heads / shape.kv_heads,
                           .experts = shape.experts};
  for (GgufTensor& tensor : tensors) {
    const WeightInfo info{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape};
    tensor.dtype = choose_dtype(mixture, info, model).dtype;
  }
  SHUNT_TRY_ASSIGN(auto writer, GgufWriter::create(path, metadata_of(shape, mixture), tensors, progress));
  std::vector<std::byte> buffer(1U << 20);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    // Seeds that are far apart in the generator's sequence.
    const std::uint64_t tensor_seed = (seed * 1000003 + i) * 0xD1342543DE82EF95U;
    SHUNT_TRY(write_tensor(*writer, tensors[i], tensor_seed, buffer));
  }
  return writer->finish();
}

}  // namespace shunt::models
