// Many rows of x times a weight in rows, or times gate and up, by matrix instructions.
//
// A block multiplies 128 rows of the weight (with gate and up, 16 of each in turn) by a tile of x's, which
// linear_x_tiles has written as halves, 64 columns a step. It copies bytes of the weight as they are, a chunk of
// columns at a time. Each step, a thread decodes 32 columns of one row to halves; then, while these are multiplied, the
// next columns of x and the next chunk are copied. Where the GPU holds two blocks, one decodes while the other
// multiplies.
//
// So that halves neither overflow nor become too small, a row of the weight is multiplied by a power of two. Its first
// columns choose that with room above; a row that outgrows it takes a smaller one, by which its sums are multiplied
// too. The order of all sums is fixed.
#include "ops/linear/linear_args.h"

#include "ops/halves_unit.cuh"
#include "ops/tile_product.cuh"

namespace shunt {
namespace {

constexpr std::uint32_t kWeights = kLinearHalvesWeights;
constexpr std::uint32_t kStepColumns = kLinearPieceColumns;
constexpr std::uint32_t kBelow = kLinearPieceBytes;  // from a block of halves to the one below
constexpr std::uint32_t kWaves = kLinearHalvesThreads / kWaveThreads;
constexpr std::int32_t kWantedSize = 10;  // of a row's first values, when multiplied
constexpr std::int32_t kMostSize = 15;
constexpr std::int32_t kMostExponent = 100;
static_assert(kWeights * kStepColumns / kUnitElements == kLinearHalvesThreads, "a thread decodes a unit a step");

// The shape of a block's tile, and what its waves have of it, in tiles of the matrix instructions.
template <std::uint32_t of, std::uint32_t x_rows>
struct Shape {
  using Unit = HalvesUnit<of>;
  static constexpr std::uint32_t kXRows = x_rows;
  static constexpr std::uint32_t kChunkColumns = linear_halves_columns(Unit::kBlockElements);
  static constexpr std::uint32_t kChunkBytes = kChunkColumns / Unit::kBlockElements * Unit::kBlockBytes;
  static constexpr std::uint32_t kPitch = linear_halves_pitch(kChunkBytes);
  static constexpr std::uint32_t kStepsOfChunk = kChunkColumns / kStepColumns;
  static constexpr std::uint32_t kXBytes = x_rows * kStepColumns * 2;
  static constexpr std::uint32_t kWavesAlongX = x_rows > 64U ? kWaves / 2U : 2U;
  static constexpr std::uint32_t kWavesAlongWeights = kWaves / kWavesAlongX;
  static constexpr std::uint32_t kTilesAlongX = x_rows / kTile / kWavesAlongX;
  static constexpr std::uint32_t kTilesAlongWeights = kWeights / kTile / kWavesAlongWeights;
  static_assert(kTilesAlongWeights % 2 == 0, "a wave has the gate of what it has of up");
};

// What the host gives a block of shared memory: bytes of the weight, its halves, and x for two steps.
template <class S>
struct Memory {
  SHUNT_FUNCTION static std::uint8_t* raw(std::uint32_t place) { return dynamic_shared() + place * S::kPitch; }
  SHUNT_FUNCTION static std::uint8_t* weights() { return raw(kWeights); }
  SHUNT_FUNCTION static std::uint8_t* x(std::uint32_t step) {
    return weights() + kWeights * kStepColumns * 2U + step % 2U * S::kXBytes;
  }
};

// The exponents of the powers of two in two steps, and whether any has changed.
struct Exponents {
  std::int32_t of_row[2][kWeights];
  std::uint32_t changed[2];

  SHUNT_FUNCTION float change(std::uint32_t step, std::uint32_t place) const {
    const std::int32_t change = of_row[step % 2U][place] - of_row[(step + 1U) % 2U][place];
    return kernel_math::power_of_two(change < -126 ? -126 : change);
  }
};

// The rows of the weight, or of gate and up, that the block multiplies.
struct WeightRows {
  const CudaCall* call;
  std::uint64_t tile;

  SHUNT_FUNCTION const LinearArgs& args() const { return arguments_of<LinearArgs>(call); }
  SHUNT_FUNCTION bool is_up(std::uint32_t place) const { return args().has_up != 0 && place / kTile % 2U == 1; }
  SHUNT_FUNCTION std::uint64_t number(std::uint32_t place) const {
    if (args().has_up == 0) return tile * kWeights + place;
    return tile * (kWeights / 2U) + place / (2U * kTile) * std::uint64_t{kTile} + place % kTile;
  }
  // Past the last row, the last one is read again; its sums are not stored.
  SHUNT_FUNCTION const std::uint8_t* at(std::uint32_t place) const {
    const std::uint64_t row = number(place);
    return input_of<std::uint8_t>(call, is_up(place) ? 3 : 1) +
           (row < args().m ? row : args().m - 1U) * args().weight_row_bytes;
  }
};

SHUNT_FUNCTION std::uint32_t past_sixteen(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) % 16U);
}

// Copies the sixteens that hold a chunk of each row.
template <class S>
SHUNT_FUNCTION void copy_chunk(const WeightRows& rows, std::uint32_t chunk) {
  constexpr std::uint32_t kSixteens = (S::kChunkBytes + 15U + 15U) / 16U;  // at most, of a row
  const std::uint32_t left = rows.args().weight_row_bytes - chunk * S::kChunkBytes;
  const std::uint32_t bytes = left < S::kChunkBytes ? left : S::kChunkBytes;
  for (std::uint32_t i = lane(); i < kWeights * kSixteens; i += kLinearHalvesThreads) {
    const std::uint32_t place = i / kSixteens;
    const std::uint32_t at = i % kSixteens * 16U;
    const std::uint8_t* const row = rows.at(place) + std::uint64_t{chunk} * S::kChunkBytes;
    const std::uint32_t before = past_sixteen(row);
    if (at < before + bytes) copy_sixteen(shared_address(Memory<S>::raw(place) + at), row - before + at, true);
  }
}

// The tile of x: pieces of 8 rows.
struct XPieces {
  const std::uint8_t* first;  // of the first columns
  std::uint64_t distance;     // from columns to the next
  std::uint32_t bytes;

  SHUNT_FUNCTION XPieces(const CudaCall* call, std::uint64_t rows, std::uint64_t first_row, std::uint32_t most_rows) {
    const std::uint64_t eights = linear_tiles(rows, kLinearPieceRows);
    const std::uint64_t left = eights - first_row / kLinearPieceRows;
    first = reinterpret_cast<const std::uint8_t*>(call->scratch) + first_row / kLinearPieceRows * kLinearPieceBytes;
    distance = eights * kLinearPieceBytes;
    bytes = static_cast<std::uint32_t>(left < most_rows / kLinearPieceRows ? left : most_rows / kLinearPieceRows) *
            kLinearPieceBytes;
  }
  template <class S>
  SHUNT_FUNCTION void copy(std::uint32_t step) const {
    const std::uint8_t* const from = first + step * distance;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < (S::kXBytes + 16U * kLinearHalvesThreads - 1U) / (16U * kLinearHalvesThreads); ++i) {
      const std::uint32_t at = (i * kLinearHalvesThreads + lane()) * 16U;
      if (at < bytes) copy_sixteen(shared_address(Memory<S>::x(step) + at), from + at, true);
    }
  }
};

// Decodes 32 of a step's columns of a row. Thread `lane() ^ 16` has the others.
template <class S>
struct Decoder {
  std::uint32_t place = lane() / 32U * 16U + lane() % 16U;
  std::uint32_t part = lane() % 32U / 16U;
  const std::uint8_t* row;
  std::int32_t exponent = kMostExponent;

  SHUNT_FUNCTION explicit Decoder(const WeightRows& rows) : row(rows.at(place)) {}

  SHUNT_FUNCTION void decode(std::uint32_t step, Exponents& exponents) {
    typename S::Unit unit;
    const std::uint32_t chunk = step / S::kStepsOfChunk;
    unit.read(Memory<S>::raw(place) + past_sixteen(row + std::uint64_t{chunk} * S::kChunkBytes),
              step % S::kStepsOfChunk * 2U + part);
    if constexpr (!S::Unit::kIsFixed) choose(unit, step, exponents);
    std::uint8_t* const at =
        Memory<S>::weights() + place / 8U * kBelow + part * (4U * kBlockOfHalves) + place % 8U * 16U;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kUnitElements / kTile; ++i) put(unit, i, at + i * (2U * kBlockOfHalves));
  }
  SHUNT_FUNCTION void choose(typename S::Unit& unit, std::uint32_t step, Exponents& exponents) {
    const auto mine = static_cast<float>(unit.size());
    const auto size = static_cast<std::int32_t>(kernel_math::larger(mine, from_lane(mine, 16)));
    const bool outgrows = size + exponent > kMostSize;
    if (outgrows || step == 0) {
      exponent = kWantedSize - size < kMostExponent ? kWantedSize - size : kMostExponent;
      if (step != 0) exponents.changed[step % 2U] = 1;
    }
    exponents.of_row[step % 2U][place] = exponent;
    unit.use(kernel_math::power_of_two(exponent));
  }
  // Stores 16 columns in the order in which the tiles of x have theirs.
  SHUNT_FUNCTION static void put(const typename S::Unit& unit, std::uint32_t sixteen, std::uint8_t* at) {
    FourWords blocks[2];
    SHUNT_UNROLL
    for (std::uint32_t t = 0; t < 4; ++t) {
      const TwoPairs four = unit.four(sixteen * 4U + t);
      blocks[0].words[t] = four.low;
      blocks[1].words[t] = four.high;
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) *reinterpret_cast<FourWords*>(at + i * kBlockOfHalves) = blocks[i];
  }
};

// The sums of a wave.
template <class S>
struct Sums {
  TileSums tiles[S::kTilesAlongWeights][S::kTilesAlongX];
  std::uint32_t first_weight = lane() / kWaveThreads % S::kWavesAlongWeights * S::kTilesAlongWeights * kTile;
  std::uint32_t first_x = lane() / kWaveThreads / S::kWavesAlongWeights * S::kTilesAlongX * kTile;

  SHUNT_FUNCTION void multiply(std::uint32_t step) {
    const SharedAddress weights = shared_address(Memory<S>::weights()) + first_weight / 8U * kBelow;
    const SharedAddress x = shared_address(Memory<S>::x(step)) + first_x / 8U * kBelow;
    SHUNT_UNROLL
    for (std::uint32_t k = 0; k < kStepColumns / kTile; ++k) {
      TileOperand rights[S::kTilesAlongX];
      SHUNT_UNROLL
      for (std::uint32_t j = 0; j < S::kTilesAlongX; ++j)
        rights[j] = load_tile(x + (2U * j * kBelow + k * 2U * kBlockOfHalves), kBelow);
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < S::kTilesAlongWeights; ++i) {
        const TileOperand left = load_tile(weights + (2U * i * kBelow + k * 2U * kBlockOfHalves), kBelow);
        SHUNT_UNROLL
        for (std::uint32_t j = 0; j < S::kTilesAlongX; ++j) add_tile_product(tiles[i][j], left, rights[j]);
      }
    }
  }
  // Multiplies by the changes of powers of two in a step.
  SHUNT_FUNCTION void shrink(const Exponents& exponents, std::uint32_t step) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < S::kTilesAlongWeights; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < kSumsOfThread; ++e) {
        const float change = exponents.change(step, first_weight + i * kTile + TileSums::row_of(e));
        SHUNT_UNROLL
        for (std::uint32_t j = 0; j < S::kTilesAlongX; ++j) tiles[i][j].multiply(e, change);
      }
    }
  }
};

// Where the products go.
template <class S>
struct Outputs {
  const CudaCall* call;
  WeightRows weights;
  const Exponents* exponents;
  std::uint32_t last_step;
  std::uint64_t first_row;
  std::uint64_t rows;

  SHUNT_FUNCTION const LinearArgs& args() const { return weights.args(); }
  SHUNT_FUNCTION float unscaled(float sum, std::uint32_t place) const {
    if constexpr (S::Unit::kIsFixed) return sum;
    return sum * kernel_math::power_of_two(-exponents->of_row[last_step % 2U][place]);
  }
  SHUNT_FUNCTION float x_factor(std::uint64_t row) const {
    return reinterpret_cast<const float*>(call->scratch + linear_x_tiles_bytes(rows, args().k, 1))[row];
  }
  SHUNT_FUNCTION void store(Sums<S>& sums) const {
    SHUNT_UNROLL
    for (std::uint32_t j = 0; j < S::kTilesAlongX; ++j) {
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < kSumsOfThread; ++e) {
        const std::uint64_t row = first_row + sums.first_x + j * kTile + TileSums::column_of(e);
        if (row < rows) store_row(sums, row, j, e);
      }
    }
  }
  SHUNT_FUNCTION void store_row(Sums<S>& sums, std::uint64_t row, std::uint32_t j, std::uint32_t e) const {
    const float factor = x_factor(row);
    const std::uint32_t first = sums.first_weight + TileSums::row_of(e);
    float* const out = output_of<float>(call) + row_offset(args().extents, args().out_strides, row);
    const float* const residual =
        args().has_residual != 0 ? input_of<float>(call, 2) + row_offset(args().extents, args().residual_strides, row)
                                 : nullptr;
    const auto product = [&](std::uint32_t i) { return unscaled(sums.tiles[i][j].at(e), first + i * kTile) * factor; };
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < S::kTilesAlongWeights; i += 2) {
      const float products[2] = {product(i), product(i + 1U)};
      if (args().has_up != 0) {
        put(out, nullptr, first + i * kTile, silu(products[0]) * products[1]);
      } else {
        put(out, residual, first + i * kTile, products[0]);
        put(out, residual, first + (i + 1U) * kTile, products[1]);
      }
    }
  }
  SHUNT_FUNCTION void put(float* out, const float* residual, std::uint32_t place, float value) const {
    const std::uint64_t column = weights.number(place);
    if (column < args().m) out[column] = residual == nullptr ? value : value + residual[column];
  }
};

template <std::uint32_t of, std::uint32_t x_rows>
SHUNT_FUNCTION void multiply_halves_tile(const CudaCall* call) {
  using S = Shape<of, x_rows>;
  SHUNT_SHARED Exponents exponents;
  const auto& args = arguments_of<LinearArgs>(call);
  const std::uint64_t rows = linear_rows(args, parameters_of(call));
  const std::uint64_t x_tiles = linear_tiles(linear_capacity(args), x_rows);
  const std::uint64_t first_row = group() % x_tiles * x_rows;
  if (first_row >= rows) return;
  const WeightRows weights{call, group() / x_tiles};
  const XPieces x(call, rows, first_row, x_rows);
  const auto copy = [&](std::uint32_t step) {
    if (step % S::kStepsOfChunk == 0) copy_chunk<S>(weights, step / S::kStepsOfChunk);
    x.template copy<S>(step);
    commit_copies();
  };
  Decoder<S> decoder(weights);
  Sums<S> sums;
  const std::uint32_t steps = args.k / kStepColumns;
  copy(0);
  if (lane() == 0) exponents.changed[0] = exponents.changed[1] = 0;
  for (std::uint32_t step = 0; step < steps; ++step) {
    await_copies<0>();
    sync();  // all copies are there, and the halves of the step before have been multiplied
    decoder.decode(step, exponents);
    sync();
    if (step + 1U < steps) copy(step + 1U);
    if constexpr (!S::Unit::kIsFixed) {
      if (exponents.changed[step % 2U] != 0) sums.shrink(exponents, step);
      if (lane() == 0) exponents.changed[(step + 1U) % 2U] = 0;
    }
    sums.multiply(step);
  }
  Outputs<S>{call, weights, &exponents, steps - 1U, first_row, rows}.store(sums);
}

}  // namespace
}  // namespace shunt

#define SHUNT_LINEAR_HALVES(weight, x_rows)                                                 \
  SHUNT_BOUNDED_KERNEL(linear_halves_##weight##_##x_rows, shunt::kLinearHalvesThreads, 2) { \
    shunt::multiply_halves_tile<shunt::dtype::weight, x_rows>(call);                        \
  }
#define SHUNT_FOR_WEIGHT(weight)  \
  SHUNT_LINEAR_HALVES(weight, 32) \
  SHUNT_LINEAR_HALVES(weight, 64) \
  SHUNT_LINEAR_HALVES(weight, 128)
#include "ops/each_weight.cuh"
