// Writes a GGUF file (version 3, little-endian): first the header, then the tensors' bytes as they come.
//
// finish() puts the file in its place. Until then, and after any error, the target is unchanged
// (base/system/whole_file.h). One thread at a time.
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

// Called after each piece of at most 16 MiB with the tensor bytes written so far; returning false ends the writing.
using WriteProgress = std::function<bool(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

class GgufWriter {
  struct Opened;

 public:
  // Writes the header. The alignment is that of the metadata, or 32. Errors: io; invalid for a tensor or key that a
  // file cannot hold, and if `path` is a folder or device.
  [[nodiscard]] static Result<std::unique_ptr<GgufWriter>> create(const std::string& path, const Metadata& metadata,
                                                                  std::span<const GgufTensor> tensors,
                                                                  WriteProgress progress = {});
  // For create() only.
  explicit GgufWriter(Opened opened);
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  // Appends to the data of the tensors, in the order given. One call may end inside a tensor or span several. Adds
  // padding. Errors: io (a full disk, ...); invalid past the last tensor; interrupted if the progress function returned
  // false.
  [[nodiscard]] Status write(std::span<const std::byte> bytes);
  // Completes the file; nothing can be written afterwards. Errors: invalid while bytes of a tensor are missing; io.
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
  std::size_t tensor_ = 0;             // the tensor of the next byte
  std::uint64_t tensor_position_ = 0;  // bytes of it already written
};

}  // namespace shunt::models
