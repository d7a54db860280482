// Limits what importing one ONNX model may make. One sum covers all constants that are read, computed, repeated,
// joined, copied or kept as weights. It also covers the nodes into which one node of the file is unrolled.
//
// Everything counts, even what is dropped again, so the budget bounds time as well as memory. It grows with the files.
// A model that holds its weights makes at most about 20 bytes per byte: an 8-bit integer is read as 64 bits, converted,
// transposed and kept as F32. A small file may make kLeastBytes, which takes a fraction of a second. A plain value; one
// thread.
#pragma once

#include <cstdint>

#include "shunt/status.h"

namespace shunt::onnx {

class Budget {
 public:
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{128} << 20U;
  static constexpr std::uint64_t kBytesPerFileByte = 32;

  // Adds a file that belongs to the model.
  void add_file(std::uint64_t bytes);
  // Call before making anything. Errors: unsupported if `count` things of that size exceed the rest of the budget.
  [[nodiscard]] Status take(std::uint64_t count, std::uint64_t bytes_each);

 private:
  std::uint64_t most_bytes_ = kLeastBytes;
  std::uint64_t made_bytes_ = 0;
};

}  // namespace shunt::onnx
