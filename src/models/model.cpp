#include "models/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "run/read_ahead.h"

namespace shunt::models {
namespace {

constexpr std::uint64_t kReportBytes = 64U << 20U;

}  // namespace

Model::Model(std::unique_ptr<GgufFile> file, ModelConfig config, Tokenizer tokenizer, Result<ChatTemplate> chat)
    : file_(std::move(file)),
      config_(std::move(config)),
      weights_(std::make_unique<ModelWeights>(*file_, config_)),
      tokenizer_(std::move(tokenizer)),
      chat_(std::move(chat)) {}

Result<std::unique_ptr<Model>> Model::load(const std::string& path, const Adjust& adjust) {
  SHUNT_TRY_ASSIGN(std::unique_ptr<GgufFile> file, GgufFile::open(path));
  auto model = create(std::move(file), adjust);
  if (!model) return fail_at(path, std::move(model).error());
  return model;
}

Result<std::unique_ptr<Model>> Model::from_memory(std::span<const std::byte> bytes) {
  SHUNT_TRY_ASSIGN(std::unique_ptr<GgufFile> file, GgufFile::from_memory(bytes));
  return create(std::move(file), {});
}

Result<std::unique_ptr<Model>> Model::create(std::unique_ptr<GgufFile> file, const Adjust& adjust) {
  SHUNT_TRY_ASSIGN(ModelConfig config, read_config(file->metadata(), *file));
  if (adjust) adjust(config);
  SHUNT_TRY_ASSIGN(Tokenizer tokenizer, Tokenizer::create(file->metadata()));
  if (tokenizer.token_count() != config.vocabulary)
    return fail(Code::invalid, fmt::format("the tokenizer has {} tokens, \"token_embd.weight\" has {} rows",
                                           tokenizer.token_count(), config.vocabulary));
  auto chat = ChatTemplate::create(file->metadata(), tokenizer);
  return std::unique_ptr<Model>(new Model(std::move(file), std::move(config), std::move(tokenizer), std::move(chat)));
}

std::uint64_t Model::weight_bytes() const {
  std::uint64_t sum = 0;
  for (const WeightInfo& info : file_->weights()) sum += info.bytes;
  return sum;
}

Status Model::warm(const Progress& progress) {
  const std::uint64_t total = weight_bytes();
  std::uint64_t done = 0;
  std::uint64_t reported = 0;
  ReadAhead ahead(*file_);
  const std::span<const WeightInfo> weights = file_->weights();
  for (std::size_t index = 0; index < weights.size(); ++index)
    for (std::uint64_t offset = 0; offset < weights[index].bytes; offset += kReportBytes) {
      const std::uint64_t bytes = std::min(kReportBytes, weights[index].bytes - offset);
      ahead.add(index, offset, bytes);
      done += bytes;
      if (done - reported < kReportBytes) continue;
      ahead.start();
      ahead.wait();
      reported = done;
      if (!progress(done, total)) return file_->health();
    }
  ahead.start();
  ahead.wait();
  progress(total, total);
  return file_->health();
}

}  // namespace shunt::models
