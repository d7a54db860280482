// A GGUF model file as a source of weights: one file, the parts of a split model, or bytes in memory.
//
// The object owns its mappings; spans from mapped() live as long as it or their owner() does. Opening reads only the
// headers. All calls are safe from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/mapped_file.h"
#include "models/gguf/gguf_parse.h"
#include "models/gguf/metadata.h"
#include "shunt/weights.h"

namespace shunt::models {

// Returns the files that open() would read: `path` and the other parts that its name implies. They need not exist.
[[nodiscard]] std::vector<std::string> files_of_model(const std::string& path);

class GgufFile final : public WeightSource {
  struct Empty {};

 public:
  // For open() and from_memory() only.
  explicit GgufFile(Empty) {}
  // Opens `path`. If it is any part of a split model (NAME-00001-of-00003.gguf), opens all other parts too. Errors: io;
  // invalid (not a GGUF file, damaged, truncated); unsupported (version, tensor type unless listed).
  [[nodiscard]] static Result<std::unique_ptr<GgufFile>> open(const std::string& path,
                                                              ForeignTypes foreign = ForeignTypes::refuse);
  // Reads a model from memory. REQUIRES: the bytes begin at a multiple of 8 and outlive the object.
  [[nodiscard]] static Result<std::unique_ptr<GgufFile>> from_memory(std::span<const std::byte> bytes);

  // These four are those of the first part.
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] std::uint32_t version() const { return version_; }
  [[nodiscard]] std::uint32_t alignment() const { return alignment_; }
  [[nodiscard]] std::uint64_t data_offset() const { return parts_.front().data_offset; }
  // Totals over all parts.
  [[nodiscard]] std::uint64_t total_bytes() const;
  [[nodiscard]] std::size_t part_count() const { return parts_.size(); }
  // Returns the index of a tensor in weights().
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

  // With ForeignTypes::list: the tensors that are not in weights() because Shunt does not know their type.
  [[nodiscard]] std::span<const ForeignTensor> foreign() const { return foreign_; }

  [[nodiscard]] std::span<const WeightInfo> weights() const override { return weights_; }
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t index) override;
  [[nodiscard]] std::shared_ptr<const void> owner(std::size_t index) override {
    return parts_[locations_[index].part].file;
  }
  void fetch(std::size_t index, std::uint64_t offset, std::uint64_t bytes) override;
  void release(std::size_t index, std::uint64_t offset, std::uint64_t bytes) override;
  [[nodiscard]] Status health() const override;

 private:
  struct Part {
    std::shared_ptr<MappedFile> file;  // null for bytes in memory
    std::span<const std::byte> bytes;
    std::uint64_t data_offset = 0;
  };
  struct Location {
    std::uint32_t part = 0;
    std::uint64_t offset = 0;
  };

  // Bytes of a part's file.
  struct Stretch {
    const MappedFile* file;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  // Returns where bytes of a tensor are, as far as it has them; nothing if no file holds them.
  [[nodiscard]] std::optional<Stretch> stretch_of(std::size_t index, std::uint64_t offset, std::uint64_t bytes) const;
  // Adds the tensors of another part.
  void append(Part part, GgufHeader& header);
  // Opens all parts of the model; `path` is part number `given`.
  Status open_parts(const std::string& path, std::uint32_t given, std::uint32_t count, ForeignTypes foreign);
  Status index_names();

  Metadata metadata_;
  std::uint32_t version_ = 0;
  std::uint32_t alignment_ = 0;
  std::vector<Part> parts_;
  std::vector<WeightInfo> weights_;
  std::vector<ForeignTensor> foreign_;
  std::vector<Location> locations_;     // of each weight
  std::vector<std::uint32_t> by_name_;  // indices of weights_, sorted by name
};

}  // namespace shunt::models
