// What importing one ONNX model may make: one sum over all constants that are read, computed, repeated, joined, copied
// or kept as weights, and over the nodes into which one node of the file is unrolled.
//
// Everything made counts, also what is dropped again, so that the budget bounds time as well as memory. It grows with
// the files: a model that holds its weights makes at most about 20 bytes of each byte (an 8-bit integer is read as 64
// bits, converted, transposed and kept as F32). A file of few bytes may make kLeastBytes, which takes a fraction of a
// second. A plain value; one thread.
#pragma once

#include <cstdint>

#include "shunt/status.h"

namespace shunt::onnx {

class Budget {
 public:
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{128} << 20U;
  static constexpr std::uint64_t kBytesPerFileByte = 32;

  // Another file that the model consists of.
  void add_file(std::uint64_t bytes);
  // Before anything is made. Errors: unsupported where so many things of that size are more than is left.
  [[nodiscard]] Status take(std::uint64_t count, std::uint64_t bytes_each);

 private:
  std::uint64_t most_bytes_ = kLeastBytes;
  std::uint64_t made_bytes_ = 0;
};

}  // namespace shunt::onnx
