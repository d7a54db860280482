// Up to eight rows of x times a weight. A warp, or several that share the columns, multiplies two rows of the weight:
// neighbours, or the same row of gate and up.
//
// Weights are read 16 bytes a thread, one piece of columns ahead of the products. Most quantized rows go through shared
// memory, since their blocks lie at odd places. A tile of x stays in shared memory, normalized but for the factor of
// its row, which the sums get at the end. The order of all sums is fixed.
#include "ops/linear/linear_args.h"

#include "ops/weight_unit.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kRows = kLinearRowWeights;
constexpr std::uint32_t kPiece = kLinearRowPiece;  // columns of a weight row that a warp takes at once
// A unit of x in shared memory: half of it, the sums of both halves, the other half. No two threads of eight that read
// four elements each use the same banks, whether they take neighbouring units or halves of every other unit.
constexpr std::uint32_t kUnit = kUnitElements + 4;
constexpr std::uint32_t kHalf = kUnitElements / 2;
constexpr std::uint32_t kSums = kHalf;
constexpr std::uint32_t kOtherHalf = kHalf + 4;

// Returns the place of a column in a tile of x.
SHUNT_FUNCTION std::uint32_t in_tile(std::uint32_t column) {
  return column / kUnitElements * kUnit + column / kHalf % 2U * kOtherHalf + column % kHalf;
}

SHUNT_FUNCTION const FourFloats& four_at(const float* x) { return *reinterpret_cast<const FourFloats*>(x); }

SHUNT_FUNCTION float dot(const FourFloats& a, const FourFloats& b, float sum) {
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) sum += a.values[i] * b.values[i];
  return sum;
}

// Rows of blocks. A warp copies a piece of each row to shared memory, then a thread takes one unit of it.
template <std::uint32_t of>
struct WeightRows {
  using Unit = WeightUnit<of>;
  static constexpr std::uint32_t kSixteen = 16;
  static constexpr std::uint32_t kPieceBytes = kPiece / Unit::kBlockElements * Unit::kBlockBytes;
  // Room for a piece that begins anywhere in 16 bytes, and for the word after it.
  static constexpr std::uint32_t kStageBytes = (kPieceBytes + 15 + 4 + 15) / kSixteen * kSixteen;
  static constexpr std::uint32_t kLoads = (kStageBytes / kSixteen + kWarp - 1) / kWarp;
  static constexpr std::uint32_t kSharedBytes = kRows * kStageBytes;  // of a warp
  static constexpr bool kReadsAhead = true;
  FourWords loaded[kRows][kLoads]{};

  // Starts to read a piece that begins at `row` + `begin` and ends before `row` + `end`.
  SHUNT_FUNCTION void load(const std::uint8_t* const (&rows)[kRows], std::uint64_t begin, std::uint64_t end) {
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) {
      const std::uint8_t* const first = rows[r] + begin;
      const std::uint8_t* const last = rows[r] + end;
      const std::uint8_t* const at =
          first - reinterpret_cast<std::uintptr_t>(first) % kSixteen + std::uint64_t{lane() % kWarp} * kSixteen;
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < kLoads; ++i) {
        const std::uint8_t* const from = at + std::uint64_t{i} * kWarp * kSixteen;
        if (from < last) loaded[r][i] = load_once(from);
      }
    }
  }
  // `shared` is the warp's.
  SHUNT_FUNCTION void put(std::uint8_t* shared) const {
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) {
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < kLoads; ++i) {
        const std::uint32_t at = (lane() % kWarp + i * kWarp) * kSixteen;
        if (at < kStageBytes)
          *reinterpret_cast<FourWords*>(shared + std::uint64_t{r} * kStageBytes + at) = loaded[r][i];
      }
    }
  }
  // Returns where in its part of shared memory a piece begins that is at `at`.
  SHUNT_FUNCTION static std::uint32_t place_of(const std::uint8_t* at) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) % kSixteen);
  }
  // Adds the products of the first `columns` columns of the piece; `x` is the tile from there on.
  template <std::uint32_t x_rows>
  SHUNT_FUNCTION void multiply(const std::uint8_t* shared, const std::uint32_t (&places)[kRows], const float* x,
                               std::uint32_t x_pitch, std::uint32_t columns, float (&sums)[kRows][x_rows]) const {
    const std::uint32_t unit = lane() % kWarp;
    if (unit * kUnitElements >= columns) return;
    constexpr std::uint32_t kUnits = Unit::kBlockElements / kUnitElements;
    Unit units[kRows];
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r)
      units[r].read(
          shared + std::uint64_t{r} * kStageBytes + places[r] + std::uint64_t{unit / kUnits} * Unit::kBlockBytes,
          unit % kUnits);
    const float* const mine = x + std::uint64_t{unit} * kUnit;
    SHUNT_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half) {
      float products[kRows][x_rows]{};
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) {
        FourFloats numbers[kRows];
        SHUNT_UNROLL
        for (std::uint32_t r = 0; r < kRows; ++r) numbers[r] = numbers_of<Unit::kBias>(units[r].four(half * 4U + i));
        SHUNT_UNROLL
        for (std::uint32_t n = 0; n < x_rows; ++n) {
          const FourFloats four =
              four_at(mine + std::uint64_t{n} * x_pitch + std::uint64_t{half} * kOtherHalf + std::uint64_t{i} * 4U);
          SHUNT_UNROLL
          for (std::uint32_t r = 0; r < kRows; ++r) products[r][n] = dot(numbers[r], four, products[r][n]);
        }
      }
      SHUNT_UNROLL
      for (std::uint32_t r = 0; r < kRows; ++r) {
        const std::uint32_t which = Unit::kHasHalves ? half : 0;
        SHUNT_UNROLL
        for (std::uint32_t n = 0; n < x_rows; ++n) {
          sums[r][n] += units[r].scale[which] * products[r][n];
          if constexpr (Unit::kHasOffset)
            sums[r][n] += units[r].offset[which] * mine[std::uint64_t{n} * x_pitch + kSums + half];
        }
      }
    }
  }
};

// Rows of Q4_K, whose blocks have a multiple of 16 bytes, so that they go straight to registers. A thread takes 16
// bytes of numbers: a half of an even unit in the low nibbles, and of the unit after it in the high ones.
template <std::uint32_t of>
struct SuperblockRows {
  static constexpr std::uint32_t kBlockBytes = 144;
  static constexpr std::uint32_t kHeaderBytes = 16;
  static constexpr std::uint32_t kThreadsOfBlock = 8;
  static constexpr std::uint32_t kSharedBytes = 0;
  static constexpr bool kReadsAhead = true;
  struct Block {
    FourWords header;
    FourWords numbers;
  };
  Block loaded[kRows]{};
  Block held[kRows]{};

  SHUNT_FUNCTION void load(const std::uint8_t* const (&rows)[kRows], std::uint64_t begin, std::uint64_t end) {
    const std::uint32_t part = lane() % kThreadsOfBlock;
    const std::uint64_t at = begin + std::uint64_t{lane() % kWarp / kThreadsOfBlock} * kBlockBytes;
    if (at >= end) return;
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) {
      const std::uint8_t* const block = rows[r] + at;
      loaded[r].header = load_once_at_even(block);
      loaded[r].numbers = load_once_at_even(block + kHeaderBytes + std::uint64_t{part} * 16U);
    }
  }
  SHUNT_FUNCTION void put(std::uint8_t*) {
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) held[r] = loaded[r];
  }
  SHUNT_FUNCTION static std::uint32_t place_of(const std::uint8_t*) { return 0; }

  // Scale and offset of the thread's two units. Their 6 bits lie in three words: those of units 4 to 7 in the third,
  // and at the top of the others.
  SHUNT_FUNCTION static void scales_of(const FourWords& header, float (&scales)[2], float (&offsets)[2]) {
    const std::uint32_t pair = lane() % kThreadsOfBlock / 2U;
    const std::uint32_t shift = pair % 2U * 16U;
    const std::uint32_t first = header.words[1] >> shift;
    const std::uint32_t second = header.words[2] >> shift;
    const std::uint32_t third = header.words[3] >> shift;
    const std::uint32_t six_bits = pair < 2U ? first & 0x3F3FU : (third & 0x0F0FU) | (first >> 2U & 0x3030U);
    const std::uint32_t minima = pair < 2U ? second & 0x3F3FU : (third >> 4U & 0x0F0FU) | (second >> 2U & 0x3030U);
    const float scale = widen_f16(header.words[0] & 0xFFFFU);
    const float min_scale = widen_f16(header.words[0] >> 16U);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      scales[i] = scale * static_cast<float>(six_bits >> 8U * i & 255U);
      offsets[i] = -min_scale * static_cast<float>(minima >> 8U * i & 255U);
    }
  }
  template <std::uint32_t x_rows>
  SHUNT_FUNCTION void multiply(const std::uint8_t*, const std::uint32_t (&)[kRows], const float* x,
                               std::uint32_t x_pitch, std::uint32_t columns, float (&sums)[kRows][x_rows]) const {
    const std::uint32_t half = lane() % 2U;
    const std::uint32_t first = lane() % kWarp / 2U * 2U;  // of two units
    if (first * kUnitElements >= columns) return;
    float scales[kRows][2];
    float offsets[kRows][2];
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) scales_of(held[r].header, scales[r], offsets[r]);
    SHUNT_UNROLL
    for (std::uint32_t which = 0; which < 2; ++which) {
      const float* const unit = x + std::uint64_t{first + which} * kUnit;
      float products[kRows][x_rows]{};
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) {
        FourFloats numbers[kRows];
        SHUNT_UNROLL
        for (std::uint32_t r = 0; r < kRows; ++r)
          numbers[r] = numbers_of<0>(nibbles(held[r].numbers.words[i], which * 4U));
        SHUNT_UNROLL
        for (std::uint32_t n = 0; n < x_rows; ++n) {
          const FourFloats values =
              four_at(unit + std::uint64_t{n} * x_pitch + std::uint64_t{half} * kOtherHalf + std::uint64_t{i} * 4U);
          SHUNT_UNROLL
          for (std::uint32_t r = 0; r < kRows; ++r) products[r][n] = dot(numbers[r], values, products[r][n]);
        }
      }
      SHUNT_UNROLL
      for (std::uint32_t n = 0; n < x_rows; ++n) {
        const float sum = unit[std::uint64_t{n} * x_pitch + kSums + half];
        SHUNT_UNROLL
        for (std::uint32_t r = 0; r < kRows; ++r)
          sums[r][n] += scales[r][which] * products[r][n] + offsets[r][which] * sum;
      }
    }
  }
};
template <>
struct WeightRows<dtype::Q4_K> : SuperblockRows<dtype::Q4_K> {};

// Rows of floats, which go straight to registers.
template <std::uint32_t of, std::uint32_t bytes>
struct FloatRows {
  static constexpr std::uint32_t kEach = 16 / bytes;  // elements of a load
  static constexpr std::uint32_t kLoads = kPiece / kEach / kWarp;
  static constexpr std::uint32_t kSharedBytes = 0;
  static constexpr bool kReadsAhead = false;  // registers for one piece only
  FourWords loaded[kRows][kLoads]{};

  SHUNT_FUNCTION void load(const std::uint8_t* const (&rows)[kRows], std::uint64_t begin, std::uint64_t end) {
    SHUNT_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) {
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < kLoads; ++i) {
        const std::uint64_t at = begin + (lane() % kWarp + std::uint64_t{i} * kWarp) * 16U;
        if (at < end) loaded[r][i] = load_once_at_even(rows[r] + at);
      }
    }
  }
  SHUNT_FUNCTION void put(std::uint8_t*) const {}
  SHUNT_FUNCTION static std::uint32_t place_of(const std::uint8_t*) { return 0; }
  template <std::uint32_t x_rows>
  SHUNT_FUNCTION void multiply(const std::uint8_t*, const std::uint32_t (&)[kRows], const float* x,
                               std::uint32_t x_pitch, std::uint32_t columns, float (&sums)[kRows][x_rows]) const {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kLoads; ++i) {
      const std::uint32_t column = (lane() % kWarp + i * kWarp) * kEach;
      if (column >= columns) continue;
      SHUNT_UNROLL
      for (std::uint32_t part = 0; part < kEach; part += 4) {
        FourFloats numbers[kRows];
        SHUNT_UNROLL
        for (std::uint32_t r = 0; r < kRows; ++r) {
          SHUNT_UNROLL
          for (std::uint32_t e = 0; e < 4; ++e) numbers[r].values[e] = float_element<of>(loaded[r][i], part + e);
        }
        SHUNT_UNROLL
        for (std::uint32_t n = 0; n < x_rows; ++n) {
          const FourFloats four = four_at(x + std::uint64_t{n} * x_pitch + in_tile(column + part));
          SHUNT_UNROLL
          for (std::uint32_t r = 0; r < kRows; ++r) sums[r][n] = dot(numbers[r], four, sums[r][n]);
        }
      }
    }
  }
};
template <>
struct WeightRows<dtype::F32> : FloatRows<dtype::F32, 4> {};
template <>
struct WeightRows<dtype::F16> : FloatRows<dtype::F16, 2> {};
template <>
struct WeightRows<dtype::BF16> : FloatRows<dtype::BF16, 2> {};

// Puts columns `first` to `end` of x, times `norm`, into shared memory, with the sums of half units; each thread takes
// halves of one row. Returns the sum of the squares of what the thread has read.
template <std::uint32_t x_rows>
SHUNT_FUNCTION float put_tile(const CudaCall* call, std::uint32_t rows, std::uint32_t first, std::uint32_t end,
                              float* tile) {
  constexpr std::uint32_t kPitch = linear_row_tile(x_rows) / kUnitElements * kUnit;
  constexpr std::uint32_t kThreadsOfRow = linear_row_threads(x_rows) / x_rows;
  const auto& args = arguments_of<LinearArgs>(call);
  const std::uint32_t n = lane() / kThreadsOfRow;
  if (n >= rows) return 0.0F;
  const float* const x = input_of<float>(call, 0) + row_offset(args.extents, args.x_strides, n);
  const float* const norm = input_of<float>(call, 2);
  const bool x_in_sixteens = is_in_sixteens(x);
  const bool norm_in_sixteens = is_in_sixteens(norm);
  float squares = 0.0F;
  for (std::uint32_t column = first + lane() % kThreadsOfRow * kHalf; column < end; column += kThreadsOfRow * kHalf) {
    FourFloats fours[kHalf / 4];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kHalf / 4; ++i)
      fours[i] = read_four(x + column + std::uint64_t{i} * 4U, x_in_sixteens);
    if (args.has_norm != 0) {
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < kHalf / 4; ++i) {
        const FourFloats factors = read_four(norm + column + std::uint64_t{i} * 4U, norm_in_sixteens);
        squares = dot(fours[i], fours[i], squares);
        SHUNT_UNROLL
        for (std::uint32_t e = 0; e < 4; ++e) fours[i].values[e] *= factors.values[e];
      }
    }
    float* const unit = tile + std::uint64_t{n} * kPitch + std::uint64_t{(column - first) / kUnitElements} * kUnit;
    const std::uint32_t half = column / kHalf % 2U;
    float sum = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kHalf / 4; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) sum += fours[i].values[e];
      *reinterpret_cast<FourFloats*>(unit + std::uint64_t{half} * kOtherHalf + std::uint64_t{i} * 4U) = fours[i];
    }
    unit[kSums + half] = sum;
  }
  return squares;
}

// Adds the squares of a row's threads and turns them into the factor of its norm. `scratch` has room for a number of
// each thread.
template <std::uint32_t x_rows>
SHUNT_FUNCTION void put_factors(const LinearArgs& args, float squares, float* scratch, float* factors) {
  constexpr std::uint32_t kThreadsOfRow = linear_row_threads(x_rows) / x_rows;
  constexpr std::uint32_t kPart = 16;
  scratch[lane()] = squares;
  sync();
  if (lane() % kThreadsOfRow < kPart) {
    float sum = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kThreadsOfRow; i += kPart) sum += scratch[lane() + i];
    scratch[lane()] = sum;
  }
  sync();
  if (lane() < x_rows) {
    float sum = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kPart; ++i) sum += scratch[lane() * kThreadsOfRow + i];
    factors[lane()] = 1.0F / kernel_math::sqrt(sum / static_cast<float>(args.k) + args.epsilon);
  }
  sync();
}

SHUNT_FUNCTION float sum_of_warp(float value) {
  SHUNT_UNROLL
  for (std::uint32_t mask = kWarp / 2; mask != 0; mask /= 2) value += from_lane(value, mask);
  return value;
}

// Stores the sum of a row of the weight, or gate, after what follows the product. `up` is the sum of the other matrix.
SHUNT_FUNCTION void finish(const CudaCall* call, std::uint32_t n, std::uint64_t row, float sum, float up) {
  const auto& args = arguments_of<LinearArgs>(call);
  if (args.has_up != 0) sum = sum / (1.0F + kernel_math::exp(-sum)) * up;
  if (args.has_residual != 0) sum += input_of<float>(call, 2)[row_offset(args.extents, args.residual_strides, n) + row];
  output_of<float>(call)[row_offset(args.extents, args.out_strides, n) + row] = sum;
}

template <std::uint32_t of, std::uint32_t x_rows>
SHUNT_FUNCTION void multiply_rows(const CudaCall* call) {
  using Weights = WeightRows<of>;
  constexpr std::uint32_t kTile = linear_row_tile(x_rows);
  constexpr std::uint32_t kPitch = kTile / kUnitElements * kUnit;
  constexpr std::uint32_t kThreads = linear_row_threads(x_rows);
  constexpr std::uint32_t kWarps = kThreads / kWarp;
  constexpr std::uint32_t kOutputs = kRows * x_rows;  // of a pair
  SHUNT_SHARED FourFloats tile_memory[x_rows * kPitch / 4];
  SHUNT_SHARED FourWords staged_memory[kWarps * Weights::kSharedBytes / 16 + 1];
  SHUNT_SHARED float results[linear_row_most_turns(x_rows) * kWarps * kOutputs];
  SHUNT_SHARED float factors[x_rows];
  float* const tile = tile_memory[0].values;

  const auto& args = arguments_of<LinearArgs>(call);
  const auto rows = static_cast<std::uint32_t>(linear_rows(args, parameters_of(call)));
  if (rows == 0) return;
  const std::uint32_t warp = lane() / kWarp;
  const std::uint32_t sharing = linear_row_warps(args);  // warps for one pair of rows
  const std::uint32_t pairs = kWarps / sharing;          // of the block at a time
  const std::uint32_t turns = linear_row_turns(args);    // how often
  const std::uint32_t matrices = 1 + args.has_up;
  const std::uint32_t each = kRows / matrices;  // outputs of a pair, per row of x
  const std::uint64_t first_pair = group() * turns * pairs;

  Weights pieces;
  const std::uint64_t end = row_bytes(of, args.k);
  const std::uint64_t piece_bytes = row_bytes(of, kPiece);
  const std::uint8_t* weights[kRows];
  const auto load = [&](std::uint32_t turn, std::uint32_t piece) {
    const std::uint64_t row = (first_pair + std::uint64_t{turn} * pairs + warp / sharing) * each;
    const std::uint64_t begin = piece * piece_bytes;
    const std::uint64_t last = args.m - 1U;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kRows; ++i) {
      const std::uint64_t wanted = args.has_up != 0 ? row : row + i;
      weights[i] = input_of<std::uint8_t>(call, args.has_up != 0 && i == 1 ? 3 : 1) +
                   (wanted < last ? wanted : last) * args.weight_row_bytes;
    }
    if (begin < end) pieces.load(weights, begin, begin + piece_bytes < end ? begin + piece_bytes : end);
  };
  auto* const staged = reinterpret_cast<std::uint8_t*>(staged_memory) + warp * Weights::kSharedBytes;
  std::uint32_t piece = warp % sharing;
  load(0, piece);
  float squares = 0.0F;
  float sums[kRows][x_rows]{};
  for (std::uint32_t first = 0; first < args.k; first += kTile) {
    const std::uint32_t tile_end = args.k - first < kTile ? args.k : first + kTile;
    sync();
    squares += put_tile<x_rows>(call, rows, first, tile_end, tile);
    sync();
    const std::uint32_t steps = (tile_end - first + kPiece * sharing - 1) / (kPiece * sharing);
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      for (std::uint32_t step = 0; step < steps; ++step) {
        // There are several turns only if there is one tile.
        const bool turns_over = step + 1 == steps && turn + 1 < turns;
        const std::uint32_t column = piece * kPiece;
        const std::uint32_t next = turns_over ? warp % sharing : piece + sharing;
        std::uint32_t places[kRows];
        SHUNT_UNROLL
        for (std::uint32_t r = 0; r < kRows; ++r) places[r] = Weights::place_of(weights[r] + piece * piece_bytes);
        if constexpr (Weights::kSharedBytes != 0) sync_warp();
        pieces.put(staged);
        if constexpr (Weights::kSharedBytes != 0) sync_warp();
        if constexpr (Weights::kReadsAhead) load(turn + (turns_over ? 1 : 0), next);
        if (column < tile_end)
          pieces.multiply(staged, places, tile + in_tile(column - first), kPitch, tile_end - column, sums);
        if constexpr (!Weights::kReadsAhead) load(turn + (turns_over ? 1 : 0), next);
        piece = next;
      }
      if (tile_end < args.k) continue;
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < kRows; ++i) {
        SHUNT_UNROLL
        for (std::uint32_t n = 0; n < x_rows; ++n) {
          results[(turn * kWarps + warp) * kOutputs + n * kRows + i] = sum_of_warp(sums[i][n]);
          sums[i][n] = 0.0F;
        }
      }
    }
  }

  sync();
  if (args.has_norm != 0) put_factors<x_rows>(args, squares, tile, factors);
  for (std::uint32_t output = lane(); output < turns * pairs * each * x_rows; output += kThreads) {
    const std::uint32_t pair = output / (each * x_rows);
    const std::uint32_t n = output / each % x_rows;
    const std::uint64_t row = (first_pair + pair) * each + output % each;
    if (n >= rows || row >= args.m) continue;
    const auto total = [&](std::uint32_t which) {
      float sum = 0.0F;
      for (std::uint32_t part = 0; part < sharing; ++part)
        sum += results[(pair * sharing + part) * kOutputs + n * kRows + which];
      return args.has_norm != 0 ? sum * factors[n] : sum;
    };
    finish(call, n, row, total(output % each), args.has_up != 0 ? total(1) : 0.0F);
  }
}

// Returns how many blocks a multiprocessor of 64 Ki registers is to hold; kLinearRowEnough counts on 3 for one row.
[[maybe_unused]] constexpr std::uint32_t blocks_of(std::uint32_t of, std::uint32_t x_rows) {
  return (x_rows == 1 && of != dtype::F32) || x_rows == 8 ? 3 : 2;
}

}  // namespace
}  // namespace shunt

#define SHUNT_LINEAR_ROW(weight, x_rows)                                                  \
  SHUNT_BOUNDED_KERNEL(linear_row_##weight##_##x_rows, shunt::linear_row_threads(x_rows), \
                       shunt::blocks_of(shunt::dtype::weight, x_rows)) {                  \
    shunt::multiply_rows<shunt::dtype::weight, x_rows>(call);                             \
  }
#define SHUNT_FOR_WEIGHT(weight) \
  SHUNT_LINEAR_ROW(weight, 1)    \
  SHUNT_LINEAR_ROW(weight, 2)    \
  SHUNT_LINEAR_ROW(weight, 4)    \
  SHUNT_LINEAR_ROW(weight, 8)
#include "ops/each_weight.cuh"
