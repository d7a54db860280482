// Writes a GGUF file (version 3, little-endian): the header at once, then the tensors' bytes as they come.
//
// The file takes its place in finish(); until then, and after any error, the target is as it was
// (base/system/whole_file.h). For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/system/whole_file.h"
#include "models/gguf/metadata.h"
#include "shunt/tensor.h"

namespace shunt::models {

struct GgufTensor {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;  // outermost first
};

// Told after each piece of at most 16 MiB how many of the tensors' bytes are written; false ends the writing.
using WriteProgress = std::function<bool(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

class GgufWriter {
  struct Opened;

 public:
  // Writes the header. The alignment is the metadata's, else 32.
  // Errors: io; invalid for a tensor or key that a file cannot hold, and where `path` is a folder or device.
  [[nodiscard]] static Result<std::unique_ptr<GgufWriter>> create(const std::string& path, const Metadata& metadata,
                                                                  std::span<const GgufTensor> tensors,
                                                                  WriteProgress progress = {});
  // For create() only.
  explicit GgufWriter(Opened opened);
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  // Appends to the data of the tensors, one after the other in the order given; one call may end inside a
  // tensor or span several. Padding is added. Errors: io (a full disk, ...), invalid past the last tensor or
  // where the progress function ended it.
  [[nodiscard]] Status write(std::span<const std::byte> bytes);
  // Errors: invalid while bytes of a tensor are missing, io. Nothing can be written afterwards.
  [[nodiscard]] Status finish();

 private:
  struct Opened {
    std::string path;
    WholeFile file;
    std::uint64_t alignment;
    std::vector<GgufTensor> tensors;
    std::vector<std::uint64_t> tensor_bytes;
    std::uint64_t total_bytes;  // their sum
    WriteProgress progress;
  };

  [[nodiscard]] Status pad();
  [[nodiscard]] Status tell_progress() const;

  Opened opened_;
  std::uint64_t written_bytes_ = 0;    // of the tensors
  std::size_t tensor_ = 0;             // that the next byte belongs to
  std::uint64_t tensor_position_ = 0;  // bytes of it that are written
};

}  // namespace shunt::models
