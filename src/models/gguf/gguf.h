// A GGUF model file as a source of weights: one file, the parts of a split model, or bytes in memory.
//
// The object owns its mappings; spans from mapped() live as long as it or their owner() does. Opening reads the headers
// only. All calls are safe from many threads.
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

// The files that open() would read: `path`, and the other parts that its name tells of. They need not be there.
[[nodiscard]] std::vector<std::string> files_of_model(const std::string& path);

class GgufFile final : public WeightSource {
  struct Empty {};

 public:
  // For open() and from_memory() only.
  explicit GgufFile(Empty) {}
  // Opens `path` and, where it is a part of a split model (NAME-00001-of-00003.gguf, any of them), all other
  // parts. Errors: io, invalid (no GGUF file, damaged, cut short), unsupported (version, tensor type unless listed).
  [[nodiscard]] static Result<std::unique_ptr<GgufFile>> open(const std::string& path,
                                                              ForeignTypes foreign = ForeignTypes::refuse);
  // Reads a model from memory. REQUIRES: the bytes begin at a multiple of 8 and outlive the object.
  [[nodiscard]] static Result<std::unique_ptr<GgufFile>> from_memory(std::span<const std::byte> bytes);

  // Of the first part.
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] std::uint32_t version() const { return version_; }
  [[nodiscard]] std::uint32_t alignment() const { return alignment_; }
  [[nodiscard]] std::uint64_t data_offset() const { return parts_.front().data_offset; }
  // Of all parts together.
  [[nodiscard]] std::uint64_t total_bytes() const;
  [[nodiscard]] std::size_t part_count() const { return parts_.size(); }
  // The index of a tensor in weights().
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

  // Tensors that are no weights here, as Shunt does not know their type; with ForeignTypes::list.
  [[nodiscard]] std::span<const ForeignTensor> foreign() const { return foreign_; }

  [[nodiscard]] std::span<const WeightInfo> weights() const override { return weights_; }
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t index) override;
  [[nodiscard]] std::shared_ptr<const void> owner(std::size_t index) override {
    return parts_[locations_[index].part].file;
  }
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

  // Takes over the tensors of one more part.
  void append(Part part, GgufHeader& header);
  // Opens all parts of the model that has part number `given` at `path`.
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
