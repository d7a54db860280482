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
  static constexpr std::uint32_t kAhead = linear_halves_decodes_ahead(x_rows) ? 1 : 0;  // steps
  static constexpr std::uint32_t kPlaces = 1 + kAhead;                                  // of chunks and halves
  static constexpr std::uint32_t kBlocks = kAhead != 0 || of == dtype::F32 ? 1 : 2;     // that registers suffice for
  static constexpr std::uint32_t kWavesAlongX = x_rows > 64U ? kWaves / 2U : 2U;
  static constexpr std::uint32_t kWavesAlongWeights = kWaves / kWavesAlongX;
  static constexpr std::uint32_t kTilesAlongX = x_rows / kTile / kWavesAlongX;
  static constexpr std::uint32_t kTilesAlongWeights = kWeights / kTile / kWavesAlongWeights;
  static_assert(kTilesAlongWeights % 2 == 0, "a wave has the gate of what it has of up");
};

// A block's dynamic shared memory: bytes of the weight, the halves they decode to, and x for two steps.
template <class S>
struct Memory {
  static constexpr std::uint32_t kHalvesBytes = kWeights * kStepColumns * 2;

  SHUNT_FUNCTION static std::uint8_t* raw(std::uint32_t chunk, std::uint32_t place) {
    return dynamic_shared() + (chunk % S::kPlaces * kWeights + place) * S::kPitch;
  }
  SHUNT_FUNCTION static std::uint8_t* weights(std::uint32_t step) {
    return dynamic_shared() + S::kPlaces * kWeights * S::kPitch + step % S::kPlaces * kHalvesBytes;
  }
  SHUNT_FUNCTION static std::uint8_t* x(std::uint32_t step) {
    return dynamic_shared() + S::kPlaces * (kWeights * S::kPitch + kHalvesBytes) + step % 2U * S::kXBytes;
  }
};

// The exponents of the powers of two in a step, the one before and the one after it, and whether they have changed.
struct Exponents {
  std::int32_t of_row[3][kWeights];
  std::uint32_t changed[3];

  SHUNT_FUNCTION float change(std::uint32_t step, std::uint32_t place) const {
    const std::int32_t change = of_row[step % 3U][place] - of_row[(step + 2U) % 3U][place];
    return kernel_math::power_of_two(change < -126 ? -126 : change);
  }
};

// The rows of the weight, or of gate and up, that the block multiplies.
struct WeightRows {
  const std::uint8_t* matrix;
  const std::uint8_t* up;  // null: there is one matrix
  std::uint32_t first;     // rows
  std::uint32_t last;
  std::uint32_t row_bytes;

  SHUNT_FUNCTION WeightRows(const CudaCall* call, const LinearArgs& args, std::uint64_t tile)
      : matrix(input_of<std::uint8_t>(call, 1)),
        up(args.has_up != 0 ? input_of<std::uint8_t>(call, 3) : nullptr),
        first(static_cast<std::uint32_t>(tile) * (kWeights / (1U + args.has_up))),
        last(args.m - 1U),
        row_bytes(args.weight_row_bytes) {}

  SHUNT_FUNCTION std::uint32_t number(std::uint32_t place) const {
    return first + (up == nullptr ? place : place / (2U * kTile) * kTile + place % kTile);
  }
  // Past the last row, the last one is read again; its sums are not stored.
  SHUNT_FUNCTION const std::uint8_t* at(std::uint32_t place) const {
    const std::uint32_t row = number(place);
    const bool is_up = up != nullptr && place / kTile % 2U == 1;
    return (is_up ? up : matrix) + (row < last ? row : last) * std::uint64_t{row_bytes};
  }
};

SHUNT_FUNCTION std::uint32_t past_sixteen(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) % 16U);
}

// Copies the sixteens that hold a chunk of each row.
template <class S>
SHUNT_FUNCTION void copy_chunk(const WeightRows& rows, std::uint32_t chunk) {
  constexpr std::uint32_t kSixteens = (S::kChunkBytes + 15U + 15U) / 16U;  // at most, of a row
  const std::uint32_t left = rows.row_bytes - chunk * S::kChunkBytes;
  const std::uint32_t bytes = left < S::kChunkBytes ? left : S::kChunkBytes;
  for (std::uint32_t i = lane(); i < kWeights * kSixteens; i += kLinearHalvesThreads) {
    const std::uint32_t place = i / kSixteens;
    const std::uint32_t at = i % kSixteens * 16U;
    const std::uint8_t* const row = rows.at(place) + std::uint64_t{chunk} * S::kChunkBytes;
    const std::uint32_t before = past_sixteen(row);
    if (at < before + bytes) copy_sixteen(shared_address(Memory<S>::raw(chunk, place) + at), row - before + at, true);
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
    unit.read(Memory<S>::raw(chunk, place) + past_sixteen(row + std::uint64_t{chunk} * S::kChunkBytes),
              step % S::kStepsOfChunk * 2U + part);
    if constexpr (!S::Unit::kIsFixed) choose(unit, step, exponents);
    std::uint8_t* const at =
        Memory<S>::weights(step) + place / 8U * kBelow + part * (4U * kBlockOfHalves) + place % 8U * 16U;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kUnitElements / kTile; ++i) put(unit, i, at + std::uint64_t{i} * 2U * kBlockOfHalves);
  }
  SHUNT_FUNCTION void choose(typename S::Unit& unit, std::uint32_t step, Exponents& exponents) {
    const auto mine = static_cast<float>(unit.size());
    const auto size = static_cast<std::int32_t>(kernel_math::larger(mine, from_lane(mine, 16)));
    const bool outgrows = size + exponent > kMostSize;
    if (outgrows || step == 0) {
      exponent = kWantedSize - size < kMostExponent ? kWantedSize - size : kMostExponent;
      if (step != 0) exponents.changed[step % 3U] = 1;
    }
    exponents.of_row[step % 3U][place] = exponent;
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
    for (std::uint32_t i = 0; i < 2; ++i)
      *reinterpret_cast<FourWords*>(at + std::uint64_t{i} * kBlockOfHalves) = blocks[i];
  }
};

// The sums of a wave.
template <class S>
struct Sums {
  TileSums tiles[S::kTilesAlongWeights][S::kTilesAlongX];
  std::uint32_t first_weight = lane() / kWaveThreads % S::kWavesAlongWeights * S::kTilesAlongWeights * kTile;
  std::uint32_t first_x = lane() / kWaveThreads / S::kWavesAlongWeights * S::kTilesAlongX * kTile;

  SHUNT_FUNCTION void multiply(std::uint32_t step) {
    const SharedAddress weights = shared_address(Memory<S>::weights(step)) + first_weight / 8U * kBelow;
    const SharedAddress x = shared_address(Memory<S>::x(step)) + first_x / 8U * kBelow;
    SHUNT_UNROLL
    for (std::uint32_t k = 0; k < kStepColumns / kTile; ++k) {
      TileOperand rights[S::kTilesAlongX];
      SHUNT_UNROLL
      for (std::uint32_t j = 0; j < S::kTilesAlongX; ++j)
        rights[j] = load_right(x + (2U * j * kBelow + k * 2U * kBlockOfHalves), kBelow);
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < S::kTilesAlongWeights; ++i) {
        const TileOperand left = load_left(weights + (2U * i * kBelow + k * 2U * kBlockOfHalves), kBelow);
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
  const WeightRows& weights;
  const std::int32_t (&exponents)[kWeights];
  std::uint64_t rows;  // of x, from the tile's first on
  const float* x_factors;
  float* out;
  std::uint64_t out_distance;
  const float* residual;  // null: none
  std::uint64_t residual_distance;

  SHUNT_FUNCTION Outputs(const CudaCall* call, const WeightRows& of_weight, const std::int32_t (&of_rows)[kWeights],
                         std::uint64_t first_row, std::uint64_t all_rows)
      : weights(of_weight), exponents(of_rows), rows(all_rows - first_row) {
    const auto& args = arguments_of<LinearArgs>(call);
    x_factors = reinterpret_cast<const float*>(call->scratch + linear_x_tiles_bytes(all_rows, args.k, 1)) + first_row;
    out_distance = linear_row_distance(args, args.out_strides);
    out = output_of<float>(call) + first_row * out_distance;
    residual_distance = linear_row_distance(args, args.residual_strides);
    residual = args.has_residual != 0 ? input_of<float>(call, 2) + first_row * residual_distance : nullptr;
  }

  SHUNT_FUNCTION void store(const Sums<S>& sums) const {
    SHUNT_UNROLL
    for (std::uint32_t j = 0; j < S::kTilesAlongX; ++j) {
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < kSumsOfThread; ++e) {
        const std::uint32_t row = sums.first_x + j * kTile + TileSums::column_of(e);
        if (row < rows) store_row(sums, row, j, e);
      }
    }
  }
  SHUNT_FUNCTION void store_row(const Sums<S>& sums, std::uint32_t row, std::uint32_t j, std::uint32_t e) const {
    const float factor = x_factors[row];
    const std::uint32_t first = sums.first_weight + TileSums::row_of(e);
    const auto product = [&](std::uint32_t i) { return unscaled(sums.tiles[i][j].at(e), first + i * kTile) * factor; };
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < S::kTilesAlongWeights; i += 2) {
      const float products[2] = {product(i), product(i + 1U)};
      if (weights.up != nullptr) {
        put(row, first + i * kTile, silu(products[0]) * products[1]);
      } else {
        put(row, first + i * kTile, products[0]);
        put(row, first + (i + 1U) * kTile, products[1]);
      }
    }
  }
  SHUNT_FUNCTION float unscaled(float sum, std::uint32_t place) const {
    if constexpr (S::Unit::kIsFixed) return sum;
    return sum * kernel_math::power_of_two(-exponents[place]);
  }
  SHUNT_FUNCTION void put(std::uint32_t row, std::uint32_t place, float value) const {
    const std::uint32_t column = weights.number(place);
    if (column > weights.last) return;
    out[row * out_distance + column] = residual == nullptr ? value : value + residual[row * residual_distance + column];
  }
};

// Starts to copy what a step multiplies, and the chunk of what is decoded while it does.
template <class S>
SHUNT_FUNCTION void copy_step(const WeightRows& weights, const XPieces& x, std::uint32_t steps, std::uint32_t step) {
  if (step >= steps) return;
  x.template copy<S>(step);
  const std::uint32_t decoded = step + S::kAhead;
  if (decoded < steps && decoded % S::kStepsOfChunk == 0) copy_chunk<S>(weights, decoded / S::kStepsOfChunk);
  commit_copies();
}

// Multiplies a step, whose powers of two may have changed.
template <class S>
SHUNT_FUNCTION void multiply_step(Sums<S>& sums, Exponents& exponents, std::uint32_t step) {
  if constexpr (!S::Unit::kIsFixed) {
    if (exponents.changed[step % 3U] != 0) sums.shrink(exponents, step);
    if (lane() == 0) exponents.changed[(step + 2U) % 3U] = 0;
  }
  sums.multiply(step);
}

// Decodes the next step and multiplies one. Warps that share a scheduler do that in different orders.
template <class S>
SHUNT_FUNCTION void decode_and_multiply(Decoder<S>& decoder, Sums<S>& sums, Exponents& exponents, std::uint32_t steps,
                                        std::uint32_t step) {
  const std::uint32_t decodes_in = lane() / 128U;
  for (std::uint32_t turn = 0; turn < 2; ++turn) {
    if (turn != decodes_in)
      multiply_step(sums, exponents, step);
    else if (step + 1U < steps)
      decoder.decode(step + 1U, exponents);
  }
}

template <std::uint32_t of, std::uint32_t x_rows>
SHUNT_FUNCTION void multiply_halves_tile(const CudaCall* call) {
  using S = Shape<of, x_rows>;
  SHUNT_SHARED Exponents exponents;
  const auto& args = arguments_of<LinearArgs>(call);
  const std::uint64_t rows = linear_rows(args, parameters_of(call));
  const std::uint64_t x_tiles = linear_tiles(linear_capacity(args), x_rows);
  const std::uint64_t first_row = group() % x_tiles * x_rows;
  if (first_row >= rows) return;
  const WeightRows weights(call, args, group() / x_tiles);
  const XPieces x(call, rows, first_row, x_rows);
  Decoder<S> decoder(weights);
  Sums<S> sums;
  const std::uint32_t steps = args.k / kStepColumns;
  if (lane() < 3) exponents.changed[lane()] = 0;
  if constexpr (S::kAhead != 0) copy_chunk<S>(weights, 0);
  copy_step<S>(weights, x, steps, 0);
  if constexpr (S::kAhead != 0) {
    await_copies<0>();
    sync();
    decoder.decode(0, exponents);
  }
  for (std::uint32_t step = 0; step < steps; ++step) {
    await_copies<0>();
    sync();  // all copies are there, and the step before has been multiplied
    if constexpr (S::kAhead == 0) {
      decoder.decode(step, exponents);
      sync();
    }
    copy_step<S>(weights, x, steps, step + 1U);
    if constexpr (S::kAhead != 0)
      decode_and_multiply(decoder, sums, exponents, steps, step);
    else
      multiply_step(sums, exponents, step);
  }
  Outputs<S>(call, weights, exponents.of_row[(steps - 1U) % 3U], first_row, rows).store(sums);
}

}  // namespace
}  // namespace shunt

#define SHUNT_LINEAR_HALVES(weight, x_rows)                                            \
  SHUNT_BOUNDED_KERNEL(linear_halves_##weight##_##x_rows, shunt::kLinearHalvesThreads, \
                       (shunt::Shape<shunt::dtype::weight, x_rows>::kBlocks)) {        \
    shunt::multiply_halves_tile<shunt::dtype::weight, x_rows>(call);                   \
  }
#define SHUNT_SMALL_LINEAR_HALVES(weight) \
  SHUNT_LINEAR_HALVES(weight, 32)         \
  SHUNT_LINEAR_HALVES(weight, 64)         \
  SHUNT_LINEAR_HALVES(weight, 128)
#if defined(__HIP__) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800)  // no GPU has shared memory for more
#define SHUNT_FOR_WEIGHT(weight) SHUNT_SMALL_LINEAR_HALVES(weight)
#else
#define SHUNT_FOR_WEIGHT(weight) SHUNT_SMALL_LINEAR_HALVES(weight) SHUNT_LINEAR_HALVES(weight, 256)
#endif
#include "ops/each_weight.cuh"
