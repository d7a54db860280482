// Writes models with random weights as GGUF files, for tests and speed measurements; the text they generate is
// nonsense.
//
// The same shape, type and seed give the same file. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "models/gguf/gguf_writer.h"
#include "shunt/status.h"

namespace shunt::models {

struct ModelShape {
  std::string_view name;
  std::string_view architecture;
  std::uint32_t embedding;
  std::uint32_t layers;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  std::uint32_t feed_forward;  // of one expert if there are experts
  std::uint32_t vocabulary;
  std::uint32_t context;
  bool tied;  // the embedding is also the output matrix
  std::uint32_t experts = 0;
  std::uint32_t experts_used = 0;
};

[[nodiscard]] std::span<const ModelShape> model_shapes();

// Writes a model of that shape and file type (see mixture.h) to `path`. Errors: invalid for an unknown name, with the
// list; interrupted if `progress` returned false; io.
[[nodiscard]] Status make_model(std::string_view shape, std::string_view type, const std::string& path,
                                std::uint64_t seed = 1, const WriteProgress& progress = {});

}  // namespace shunt::models
