// Random weights without quantization: blocks of random bits, with scales set so that the values have a given size. For
// tests and speed measurements; gigabytes take seconds.
//
// Pure functions: the same seed gives the same bytes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shunt/status.h"
#include "shunt/tensor.h"

namespace shunt::models {

// Fills part of a tensor, from the start of a block, with blocks of zero mean and root mean square `size`.
class RandomBlocks {
 public:
  // REQUIRES: a floating or quantized dtype.
  RandomBlocks(DType dtype, float size, std::uint64_t seed);

  // Writes the next blocks. REQUIRES: whole blocks.
  void fill(std::span<std::byte> out);

 private:
  DType dtype_;
  float scale_ = 1;
  std::uint64_t state_;
};

}  // namespace shunt::models
