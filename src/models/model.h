// A loaded model file: its configuration, weights, tokenizer and chat template.
//
// Owns the open file; sessions borrow the model and must not outlive it. All calls but warm() are safe from many
// threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "models/decoder/architecture.h"
#include "models/gguf/gguf.h"
#include "models/model_weights.h"
#include "models/text/chat.h"
#include "models/text/tokenizer.h"

namespace shunt::models {

class Model {
 public:
  // `adjust` may change the configuration from the file, for experiments. Errors: those of GgufFile::open, read_config
  // and Tokenizer::create.
  using Adjust = std::function<void(ModelConfig& config)>;
  [[nodiscard]] static Result<std::unique_ptr<Model>> load(const std::string& path, const Adjust& adjust = {});
  // REQUIRES: as GgufFile::from_memory.
  [[nodiscard]] static Result<std::unique_ptr<Model>> from_memory(std::span<const std::byte> bytes);

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const Metadata& metadata() const { return file_->metadata(); }
  [[nodiscard]] const GgufFile& file() const { return *file_; }
  [[nodiscard]] WeightSource& weights() const { return *weights_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  // Errors: unsupported if the file has no template, or an unknown one.
  [[nodiscard]] const Result<ChatTemplate>& chat() const { return chat_; }
  [[nodiscard]] std::uint64_t weight_bytes() const;

  // Reads the mapped weights into memory, so that the first tokens do not wait for page faults. Calls `progress(done,
  // total)`, in bytes, now and then; returning false stops early. Errors: io.
  using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;
  [[nodiscard]] Status warm(const Progress& progress);

 private:
  [[nodiscard]] static Result<std::unique_ptr<Model>> create(std::unique_ptr<GgufFile> file, const Adjust& adjust);
  Model(std::unique_ptr<GgufFile> file, ModelConfig config, Tokenizer tokenizer, Result<ChatTemplate> chat);

  std::unique_ptr<GgufFile> file_;
  ModelConfig config_;
  std::unique_ptr<ModelWeights> weights_;
  Tokenizer tokenizer_;
  Result<ChatTemplate> chat_;
};

}  // namespace shunt::models
