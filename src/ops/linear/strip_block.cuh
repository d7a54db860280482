// A block of the kernels for few rows of x and weights in strips: its share of a product, and what it has in shared
// memory, for which its threads need no registers.
#pragma once

#include "ops/linear/linear_args.h"

#include "ops/bulk_copy.cuh"
#include "ops/collective.cuh"
#include "ops/strip.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kThreads = kLinearStripThreads;
constexpr std::uint32_t kWarps = kLinearStripWarps;
constexpr std::uint32_t kPairRows = 16;  // of the weight
constexpr std::uint32_t kStages = kLinearStripMostStages;
constexpr std::uint32_t kStagesBeforeX = 1;  // that are filled before x is read, which would wait behind more

// Returns the offset of row `n` of x or of the result, of at most `x_rows`.
template <std::uint32_t x_rows>
SHUNT_FUNCTION std::uint64_t offset_of(const LinearArgs& args, const std::uint32_t (&strides)[4], std::uint32_t n) {
  if (x_rows == 1) return 0;
  if (args.extents[1] == 1 && args.extents[2] == 1) return std::uint64_t{n} * strides[0];
  return row_offset(args.extents, strides, n);
}

// The block's rows of the weight.
struct WeightRowsOfBlock {
  std::uint32_t first[2];      // row of either stream
  std::uint32_t pairs;         // of strips
  std::uint32_t second_pairs;  // pairs, or one less: then the last has one strip

  // Returns the row of the weight, or of the result, that row `row` of a pair is. REQUIRES: has_row().
  SHUNT_FUNCTION std::uint32_t row_of(std::uint32_t pair, std::uint32_t row) const {
    return (row < 8U ? first[0] : first[1]) + pair * 8U + row % 8U;
  }
  SHUNT_FUNCTION bool has_row(std::uint32_t pair, std::uint32_t row) const {
    return pair < (row < 8U ? pairs : second_pairs);
  }
};

// The way of the weight to shared memory.
struct Stream {
  const std::uint8_t* weights[2];  // the first chunks of the block's two streams
  std::uint32_t pairs;
  std::uint32_t second_pairs;
  std::uint32_t chunks;  // of a strip
  std::uint32_t batch;
  std::uint32_t segment;
  std::uint32_t segments;
  std::uint32_t phase_rounds;  // of a phase: items of all warps
  std::uint32_t rounds;        // of all phases
  std::uint32_t stages;
  std::uint32_t ring_at;

  SHUNT_FUNCTION std::uint32_t pairs_of(std::uint32_t batch_number) const {
    const std::uint32_t left_over = pairs - batch_number * batch;
    return left_over < batch ? left_over : batch;
  }
  SHUNT_FUNCTION std::uint32_t chunks_of(std::uint32_t segment_number) const {
    const std::uint32_t left_over = chunks - segment_number * segment;
    return left_over < segment ? left_over : segment;
  }
};

// The kernel's arguments.
struct Arguments {
  CudaCall call;
  LinearArgs args;
  LinearStripPlan plan;
};

// A block's share of a product: the share `number` of `count` equal ones.
struct Share {
  std::uint32_t number;
  std::uint32_t count;
};

// Returns the strips of a share. The first shares have one more than the others.
[[maybe_unused]] SHUNT_FUNCTION WeightRowsOfBlock strip_rows_of(const Share& share, const LinearArgs& args) {
  const std::uint32_t strips = linear_strip_count(args);
  const std::uint32_t each = strips / share.count;
  const std::uint32_t more = strips - each * share.count;
  const std::uint32_t first = share.number * each + (share.number < more ? share.number : more);
  const std::uint32_t count = each + (share.number < more ? 1U : 0U);
  const bool has_up = args.has_up != 0;
  const std::uint32_t pairs = has_up ? count : (count + 1U) / 2U;
  return {{first * 8U, (has_up ? first : first + pairs) * 8U}, pairs, has_up ? count : count / 2U};
}

// The beginning of shared memory.
struct Head {
  Arguments arguments;
  std::uint64_t full[kStages];  // barriers of the ring's stages
  std::uint32_t left[kStages];  // warps that have left a stage
  float squares[kWarps];        // sums of a warp's elements of x, if there is a norm
  float factors[8];             // that divide each row of x by its norm, or 1
  std::uint64_t rows;           // of x that are valid
  WeightRowsOfBlock weight;
  Stream stream;
};
static_assert(sizeof(Head) <= kLinearStripHead);
[[maybe_unused]] SHUNT_FUNCTION Head& head() { return *reinterpret_cast<Head*>(dynamic_shared()); }

}  // namespace
}  // namespace shunt
