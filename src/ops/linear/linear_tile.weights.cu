// Many rows of x times a weight, or times gate and up. A block multiplies a tile of the weight's rows by a tile of x's,
// in F32. With gate and up, a tile has rows of both, four and four in turn.
//
// Both tiles pass through shared memory, 32 columns at a time: half of the threads decode a unit of a weight row each,
// the others read x, and normalize it but for the factor of its row, which the sums get at the end. The next columns
// are read while these are multiplied. The order of all sums is fixed.
#include "ops/linear/linear_args.h"

#include "ops/tile_unit.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kColumns = kUnitElements;           // of a step
constexpr std::uint32_t kReaders = kLinearTileThreads / 2;  // threads that read the weight, and x
constexpr std::uint32_t kWeightsOfThread = 8;               // rows of the weight whose sums a thread has
constexpr std::uint32_t kXOfThread = 4;                     // rows of x, the same
constexpr std::uint32_t kThreadsAlongX = kLinearTileRows / kXOfThread;
static_assert(kReaders == kLinearTileWeights);
static_assert(kThreadsAlongX * kLinearTileWeights / kWeightsOfThread == kLinearTileThreads);
// Columns begin at a multiple of 16 bytes, four words after those of the column before in their banks.
constexpr std::uint32_t kWeightPitch = kLinearTileWeights + 4;
constexpr std::uint32_t kXPitch = kLinearTileRows + 4;
constexpr std::uint32_t kFoursOfThread = kLinearTileRows * kColumns / 4 / kReaders;  // of x, in a step

// The columns of one step: a column of the weight after the other, then those of x.
struct Step {
  FourFloats weights[kColumns * kWeightPitch / 4];
  FourFloats x[kColumns * kXPitch / 4];
};

// Returns the row of the weight, or of gate or up, that is row `place` of a tile.
SHUNT_FUNCTION std::uint64_t weight_row_of(const LinearArgs& args, std::uint64_t tile, std::uint32_t place) {
  if (args.has_up == 0) return tile * kLinearTileWeights + place;
  return tile * (kLinearTileWeights / 2U) + place / 8U * std::uint64_t{4} + place % 4U;
}

// Reads a row of the weight, 32 columns a step, and puts them into the tile.
template <std::uint32_t of>
struct WeightReader {
  const std::uint8_t* row;
  TileUnit<of> unit;

  SHUNT_FUNCTION void read(std::uint32_t step) { unit.read(row, step); }
  SHUNT_FUNCTION void put(Step& step) const {
    float* const at = step.weights[0].values + lane();
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kColumns / 4; ++i) {
      const FourFloats four = unit.four(i);
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) at[(i * 4U + e) * std::uint64_t{kWeightPitch}] = four.values[e];
    }
  }
};

struct XReader {
  const float* row;
  const float* norm;  // null: none
  float squares = 0.0F;
  FourFloats fours[kFoursOfThread]{};

  // Returns the first of the four columns of load i.
  SHUNT_FUNCTION static std::uint32_t column_of(std::uint32_t i) {
    return (lane() % kReaders / kLinearTileRows * kFoursOfThread + i) * 4U;
  }
  SHUNT_FUNCTION void read(std::uint32_t step) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kFoursOfThread; ++i)
      fours[i] = read_four(row + std::uint64_t{step} * kColumns + column_of(i), is_in_sixteens(row));
  }
  SHUNT_FUNCTION void normalize(std::uint32_t step) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kFoursOfThread; ++i) {
      const FourFloats factors = read_four(norm + std::uint64_t{step} * kColumns + column_of(i), is_in_sixteens(norm));
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) {
        squares += fours[i].values[e] * fours[i].values[e];
        fours[i].values[e] *= factors.values[e];
      }
    }
  }
  SHUNT_FUNCTION void put(Step& step) const {
    float* const at = step.x[0].values + lane() % kLinearTileRows;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kFoursOfThread; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) at[std::uint64_t{column_of(i) + e} * kXPitch] = fours[i].values[e];
    }
  }
};

SHUNT_FUNCTION void multiply(const Step& step, float (&sums)[kWeightsOfThread][kXOfThread]) {
  const std::uint32_t x_place = lane() % kThreadsAlongX;
  const std::uint32_t weight_place = lane() / kThreadsAlongX * (kWeightsOfThread / 4);
  SHUNT_UNROLL
  for (std::uint32_t column = 0; column < kColumns; ++column) {
    const FourFloats x = step.x[column * (kXPitch / 4) + x_place];
    SHUNT_UNROLL
    for (std::uint32_t part = 0; part < kWeightsOfThread / 4; ++part) {
      const FourFloats weights = step.weights[column * (kWeightPitch / 4) + weight_place + part];
      SHUNT_UNROLL
      for (std::uint32_t r = 0; r < 4; ++r) {
        SHUNT_UNROLL
        for (std::uint32_t n = 0; n < kXOfThread; ++n) sums[part * 4U + r][n] += weights.values[r] * x.values[n];
      }
    }
  }
}

// Multiplies the sums by the factors of their rows' norms. `x` has the squares of each row, of both threads that read
// it.
SHUNT_FUNCTION void finish_norm(const LinearArgs& args, const XReader& x, float* shared,
                                float (&sums)[kWeightsOfThread][kXOfThread]) {
  if (lane() >= kReaders) shared[lane() - kReaders] = x.squares;
  sync();
  SHUNT_UNROLL
  for (std::uint32_t n = 0; n < kXOfThread; ++n) {
    const std::uint32_t row = lane() % kThreadsAlongX * kXOfThread + n;
    const float squares = shared[row] + shared[row + kLinearTileRows];
    const float factor = 1.0F / kernel_math::sqrt(squares / static_cast<float>(args.k) + args.epsilon);
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kWeightsOfThread; ++r) sums[r][n] *= factor;
  }
}

SHUNT_FUNCTION void put_sums(const CudaCall* call, std::uint64_t tile, std::uint64_t first_x, std::uint64_t rows,
                             const float (&sums)[kWeightsOfThread][kXOfThread]) {
  const auto& args = arguments_of<LinearArgs>(call);
  const std::uint32_t place = lane() / kThreadsAlongX * kWeightsOfThread;
  SHUNT_UNROLL
  for (std::uint32_t n = 0; n < kXOfThread; ++n) {
    const std::uint64_t token = first_x + std::uint64_t{lane() % kThreadsAlongX} * kXOfThread + n;
    if (token >= rows) continue;
    float* const out = output_of<float>(call) + row_offset(args.extents, args.out_strides, token);
    const float* const residual = input_of<float>(call, 2) + row_offset(args.extents, args.residual_strides, token);
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kWeightsOfThread; ++r) {
      const std::uint64_t row = weight_row_of(args, tile, place + r);
      if (row >= args.m) continue;
      if (args.has_up == 0)
        out[row] = args.has_residual != 0 ? sums[r][n] + residual[row] : sums[r][n];
      else if (r < kWeightsOfThread / 2)
        out[row] = sums[r][n] / (1.0F + kernel_math::exp(-sums[r][n])) * sums[(r + 4U) % kWeightsOfThread][n];
    }
  }
}

template <std::uint32_t of>
SHUNT_FUNCTION void multiply_tile(const CudaCall* call) {
  SHUNT_SHARED Step step;
  const auto& args = arguments_of<LinearArgs>(call);
  const std::uint64_t rows = linear_rows(args, parameters_of(call));
  const std::uint64_t x_tiles = linear_tiles(linear_capacity(args), kLinearTileRows);
  const std::uint64_t tile = group() / x_tiles;  // of the weight
  const std::uint64_t first_x = group() % x_tiles * kLinearTileRows;
  if (first_x >= rows) return;
  // Past the last row, the last one is read again; its sums are not stored.
  const std::uint32_t place = lane() % kReaders;
  const std::uint64_t weight_row = weight_row_of(args, tile, place);
  const std::uint64_t x_row = first_x + lane() % kLinearTileRows;
  WeightReader<of> weight{input_of<std::uint8_t>(call, args.has_up != 0 && place / 4U % 2U == 1 ? 3 : 1) +
                              (weight_row < args.m ? weight_row : args.m - 1U) * args.weight_row_bytes,
                          {}};
  XReader x{input_of<float>(call, 0) + row_offset(args.extents, args.x_strides, x_row < rows ? x_row : rows - 1),
            args.has_norm != 0 ? input_of<float>(call, 2) : nullptr};
  const bool reads_weight = lane() < kReaders;
  const auto read = [&](std::uint32_t number) {
    if (reads_weight)
      weight.read(number);
    else
      x.read(number);
  };
  float sums[kWeightsOfThread][kXOfThread]{};
  const std::uint32_t steps = args.k / kColumns;
  read(0);
  for (std::uint32_t number = 0; number < steps; ++number) {
    if (reads_weight) {
      weight.put(step);
    } else {
      if (x.norm != nullptr) x.normalize(number);
      x.put(step);
    }
    sync();
    if (number + 1 < steps) read(number + 1);
    multiply(step, sums);
    sync();
  }
  if (x.norm != nullptr) finish_norm(args, x, step.x[0].values, sums);
  put_sums(call, tile, first_x, rows, sums);
}

}  // namespace
}  // namespace shunt

#define SHUNT_FOR_WEIGHT(weight)                                             \
  SHUNT_BOUNDED_KERNEL(linear_tile_##weight, shunt::kLinearTileThreads, 2) { \
    shunt::multiply_tile<shunt::dtype::weight>(call);                        \
  }
#include "ops/each_weight.cuh"
