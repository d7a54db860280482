// Random weights without quantizing anything: blocks of random bits whose scales are set so that values have
// a wanted size. For tests and measurements of speed; gigabytes take seconds.
//
// Pure functions: the same seed gives the same bytes. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shunt/status.h"
#include "shunt/tensor.h"

namespace shunt::models {

// Fills a stretch of a tensor, beginning at a block, with blocks of zero mean and root mean square `size`.
class RandomBlocks {
 public:
  // REQUIRES: a floating or quantized dtype.
  RandomBlocks(DType dtype, float size, std::uint64_t seed);

  // The next blocks. REQUIRES: whole blocks.
  void fill(std::span<std::byte> out);

 private:
  DType dtype_;
  float scale_ = 1;
  std::uint64_t state_;
};

}  // namespace shunt::models
