// Many rows of x times a weight in strips, by tensor cores: the transposed result, W times x.
//
// A block takes tiles of 128 rows of the weight (with gate and up, 64 of each) and up to 256 rows of x. Eight warps
// multiply, 16 rows of the weight each: they decode their rows into registers, and the tensor core reads x, which
// linear_x_tiles has written as tiles of halves, from shared memory. More warps copy: chunks of the strips into one
// ring, pieces of x into another. While a group of products is computed, the next is decoded. In `halves` a weight and
// an element of x are one half each, and sums stay in the tensor core, whose F32 sums are cut off, not rounded. `exact`
// takes two halves of both, except for their lower halves' product, and adds the sums of each chunk in F32. Strips that
// the last tile has too many are not read, and their sums not stored; so are rows of x.
//
// Where tiles are few, several blocks compute one, each some of the columns; the sums of each warp are added by the
// last of those that have them.
//
// A kernel says by a Work what to multiply and where the products go:
//   k()              the columns
//   tiles            how many there are
//   splits()         by how many blocks the columns of a tile are split
//   split_sums()     where blocks then put their sums
//   strips_of(tile)  TileStrips, which tell the strips of a tile
//   pieces_of(tile)  the pieces of x that it multiplies
//   eights()         the distance between pieces of neighbouring columns of x, in pieces
//   outputs(tile)    where a thread's sums go; nothing if `rows` of them is 0
//   finish()         what is left to do, by the warps that multiply
#pragma once

#include "ops/linear/linear_args.h"

#include "ops/collective.cuh"
#include "ops/ring.cuh"
#include "ops/strip_halves.cuh"
#include "ops/warpgroup.cuh"

namespace shunt {
namespace {

enum ProductArithmetic : bool { halves, exact };
constexpr std::uint32_t kReaders = 8;            // warps that multiply
constexpr std::uint32_t kCopiers = 2;            // warps that copy strips
constexpr std::uint32_t kStrips = 2 * kReaders;  // of a tile
constexpr std::uint32_t kStripRows = 8;
constexpr std::uint32_t kStepsOfPiece = kLinearPieceColumns / kProductColumns;
constexpr std::int32_t kHeadroom = 2;  // by which a tile's first scale is lower than it could be
constexpr std::int32_t kMostExponent = 100;
static_assert(kStrips * kStripRows == kLinearProductWeights && kLinearPieceBytes == kBytesOfEight);

template <std::uint32_t of, std::uint32_t x_rows, bool is_exact>
struct Shape {
  using Row = StripHalves<of>;
  using Layout = Strip<of>;
  static constexpr std::uint32_t kXRows = x_rows;
  static constexpr bool kExact = is_exact;
  static constexpr bool kSplitsWeights = is_exact && !Row::kIsExact;
  static constexpr std::uint32_t kHalves = is_exact ? 2 : 1;                        // of an element of x
  static constexpr std::uint32_t kSums = x_rows / 2;                                // of a thread
  static constexpr std::uint32_t kSteps = x_rows < 256 && !kSplitsWeights ? 4 : 2;  // products in flight
  static constexpr std::uint32_t kStripBytes = linear_product_strip_bytes(Layout::kColumns, Layout::kBytes);
  static constexpr std::uint32_t kStageChunks = kStripBytes / Layout::kBytes;
  static constexpr std::uint32_t kWeightStages = linear_product_weight_stages(kStripBytes);
  static constexpr std::uint32_t kWeightBytes = kStrips * kStripBytes;
  static constexpr std::uint32_t kPieceStages = linear_product_x_stages(kStripBytes, x_rows, kHalves);
  static constexpr std::uint32_t kHalfBytes = x_rows / kLinearPieceRows * kLinearPieceBytes;
  static constexpr std::uint32_t kPieceBytes = kHalves * kHalfBytes;
  static constexpr std::uint32_t kChunksOfSum = is_exact && Row::kIsFixed ? 256 / Layout::kColumns : 1;
  static_assert(kPieceStages >= 2);
};

template <class S>
struct Rings {
  RingBarriers<S::kWeightStages> weights;
  RingBarriers<S::kPieceStages> pieces;

  SHUNT_FUNCTION static std::uint8_t* strip_at(std::uint32_t stage, std::uint32_t strip) {
    return dynamic_shared() + stage * S::kWeightBytes + strip * S::kStripBytes;
  }
  SHUNT_FUNCTION static std::uint8_t* piece_at(std::uint32_t stage) {
    return dynamic_shared() + S::kWeightStages * S::kWeightBytes + stage * S::kPieceBytes;
  }
};

// A tile, or the part of its columns that a block computes.
template <class S>
struct Part {
  std::uint32_t tile;
  std::uint32_t number;
  std::uint32_t first_chunk;
  std::uint32_t chunks;

  template <class Work>
  SHUNT_FUNCTION Part(const Work& work, std::uint32_t item)
      : tile(item / work.splits()), number(item - tile * work.splits()) {
    const std::uint32_t all = work.k() / S::Layout::kColumns;
    const std::uint32_t stages = (all + S::kStageChunks - 1U) / S::kStageChunks;
    const auto begin = [&](std::uint32_t part) {
      const std::uint32_t chunk = stages * part / work.splits() * S::kStageChunks;
      return chunk < all ? chunk : all;
    };
    first_chunk = begin(number);
    chunks = begin(number + 1U) - first_chunk;
  }
};

// Calls of(part) for the parts of this block.
template <class S, class Work, class Of>
SHUNT_FUNCTION void each_part(const Work& work, Of of) {
  for (std::uint64_t item = group(); item < work.tiles * work.splits(); item += groups())
    of(Part<S>(work, static_cast<std::uint32_t>(item)));
}

// Pieces of 8 rows of x that follow each other.
struct Pieces {
  std::uint32_t first;
  std::uint32_t count;
};

// For kCopiers warps: copies the strips of all tiles, each warp its share of a tile's, a strip a lane.
template <class S, class Work>
SHUNT_FUNCTION void copy_strips(const Work& work, Rings<S>& rings, std::uint32_t copier) {
  using Layout = typename S::Layout;
  constexpr std::uint32_t kShare = kStrips / kCopiers;
  RingPlace<S::kWeightStages> place;
  const std::uint32_t thread = lane() % 32U;
  const std::uint32_t strip = copier * kShare + thread;
  each_part<S>(work, [&](const Part<S>& part) __attribute__((always_inline)) {
    const auto strips = work.strips_of(part.tile);
    const std::uint32_t count = strips.count;
    const bool copies = thread < kShare && strip < count;
    const std::uint8_t* from = strips.at(copies ? strip : 0) + std::uint64_t{part.first_chunk} * Layout::kBytes;
    for (std::uint32_t left = part.chunks * Layout::kBytes; left != 0;) {
      const std::uint32_t bytes = left < S::kStripBytes ? left : S::kStripBytes;
      Barrier* const full = &rings.weights.full[place.stage];
      rings.weights.await_empty(place);
      if (strip == 0) expect_bytes(full, count * bytes);
      if (copies) copy_bulk(Rings<S>::strip_at(place.stage, strip), from, bytes, full);
      from += bytes;
      left -= bytes;
      place.advance();
    }
  });
}

// For one thread: copies the pieces of x for all tiles.
template <class S, class Work>
SHUNT_FUNCTION void copy_pieces(const Work& work, Rings<S>& rings) {
  constexpr std::uint32_t kPieces = S::Layout::kColumns / kLinearPieceColumns;  // of a chunk
  RingPlace<S::kPieceStages> place;
  const std::uint64_t distance = std::uint64_t{work.eights()} * kLinearPieceBytes;
  each_part<S>(work, [&](const Part<S>& part) __attribute__((always_inline)) {
    const auto [first, count] = work.pieces_of(part.tile);
    const std::uint32_t first_piece = part.first_chunk * kPieces;
    const auto* from = reinterpret_cast<const std::uint8_t*>(work.call->scratch) +
                       std::uint64_t{first} * kLinearPieceBytes + S::kHalves * first_piece * distance;
    for (std::uint32_t piece = 0; piece < part.chunks * kPieces; ++piece) {
      Barrier* const full = &rings.pieces.full[place.stage];
      rings.pieces.await_empty(place);
      expect_bytes(full, S::kHalves * count * kLinearPieceBytes);
      SHUNT_UNROLL
      for (std::uint32_t half = 0; half < S::kHalves; ++half) {
        copy_bulk(Rings<S>::piece_at(place.stage) + half * S::kHalfBytes, from, count * kLinearPieceBytes, full);
        from += distance;
      }
      place.advance();
    }
  });
}

// The two strips of a warp: the thread's rows g and 8 + g, and the powers of two by which they are multiplied. Products
// read registers while the next chunk is read and decoded. If a chunk is few products, it so takes others than the
// chunk before.
template <class S>
struct Weights {
  using Row = typename S::Row;
  static constexpr std::uint32_t kSets = S::Layout::kColumns <= 64 ? 2 : 1;
  Row strips[kSets][2];
  std::int32_t exponents[2] = {0, 0};

  SHUNT_FUNCTION void read(std::uint32_t set, const std::uint8_t* chunk) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) strips[set][i].read(chunk + i * S::kStripBytes, lane() % 32U);
  }
  SHUNT_FUNCTION float unit(std::uint32_t i) const { return kernel_math::power_of_two(exponents[i]); }
  SHUNT_FUNCTION float inverse(std::uint32_t i) const { return kernel_math::power_of_two(-exponents[i]); }

  // Chooses the powers of two for a chunk; those of `sums` stay if they can, except at the beginning of new sums.
  SHUNT_FUNCTION void choose(std::uint32_t set, bool begins, float (&sums)[S::kSums]) {
    if constexpr (!Row::kIsFixed) {
      constexpr std::int32_t kRoom = S::kSplitsWeights ? 15 : Row::kRoom;
      std::int32_t most[2];
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 2; ++i) {
        const std::int32_t room = kRoom - strips[set][i].size();
        most[i] = room < kMostExponent ? room : kMostExponent;
      }
      if (begins) {
        SHUNT_UNROLL
        for (std::uint32_t i = 0; i < 2; ++i) exponents[i] = S::kExact ? most[i] : most[i] - kHeadroom;
      } else if (any_of_warp(most[0] < exponents[0] || most[1] < exponents[1])) {
        await_products<0>();
        SHUNT_UNROLL
        for (std::uint32_t i = 0; i < 2; ++i) shrink(i, most[i], sums);
      }
      if constexpr (!S::kSplitsWeights) {
        SHUNT_UNROLL
        for (std::uint32_t i = 0; i < 2; ++i) strips[set][i].use(unit(i));
      }
    }
  }
  SHUNT_FUNCTION void shrink(std::uint32_t i, std::int32_t most, float (&sums)[S::kSums]) {
    if (most >= exponents[i]) return;
    const std::int32_t change = most - exponents[i] > -126 ? most - exponents[i] : -126;
    const float factor = kernel_math::power_of_two(change);
    SHUNT_UNROLL
    for (std::uint32_t j = 0; j < S::kSums; j += 4) {
      sums[j + i * 2U] *= factor;
      sums[j + i * 2U + 1U] *= factor;
    }
    exponents[i] = most;
  }

  // Decodes 16 columns as the tensor core takes them, and what halves leave over.
  SHUNT_FUNCTION void decode(std::uint32_t set, std::uint32_t step, std::uint32_t (&high)[4],
                             std::uint32_t (&low)[4]) const {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      StepHalves pairs;
      if constexpr (S::kSplitsWeights) {
        float values[4];
        strips[set][i].floats(step, unit(i), values);
        pairs = {narrow_pair(values[0], values[1]), narrow_pair(values[2], values[3])};
        low[i] = narrow_pair(values[0] - low_half(pairs.low), values[1] - high_half(pairs.low));
        low[2U + i] = narrow_pair(values[2] - low_half(pairs.high), values[3] - high_half(pairs.high));
      } else {
        pairs = strips[set][i].halves(step);
      }
      high[i] = pairs.low;
      high[2U + i] = pairs.high;
    }
  }
};

// Returns which of the rows of x, from the thread's first on, its sums `i` of both rows of the weight are of.
SHUNT_FUNCTION constexpr std::uint32_t place_of_sum(std::uint32_t i) { return i / 2U * 8U + i % 2U; }

// Stores the thread's sums of a tile, times the factors of the rows of x. Stores may alias the loads, so loads are made
// for many rows of x at a time.
template <class S, class Work>
SHUNT_FUNCTION void store_tile(const Work& work, std::uint32_t tile, const float (&sums)[S::kSums]) {
  constexpr std::uint32_t kTogether = S::kSums / 2 < 16 ? S::kSums / 2 : 16;  // rows of x
  const auto outputs = work.outputs(tile);
  if (outputs.rows == 0) return;
  SHUNT_UNROLL
  for (std::uint32_t first = 0; first < S::kSums / 2; first += kTogether) {
    float results[kTogether][2];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t r = 0; r < 2; ++r) results[i][r] = sums[(first + i) / 2U * 4U + i % 2U + r * 2U];
      outputs.multiply(results[i], first + i);
    }
    outputs.store(results, first);
  }
}

// Leaves the warp's sums of a part for the block that computes the tile's last part. In that block, adds all parts, in
// an order that does not depend on which is last, and returns true.
template <class S, class Work>
SHUNT_FUNCTION bool add_parts(const Work& work, const Part<S>& part, float (&sums)[S::kSums]) {
  constexpr std::uint32_t kFours = S::kSums / 4;
  constexpr std::uint32_t kTogether = kFours < 8 ? kFours : 8;
  const std::uint32_t splits = work.splits();
  const std::uint32_t place = part.tile * kReaders + lane() / 32U;
  const auto four_at = [&](std::uint32_t number, std::uint32_t four) {
    return work.split_sums() + ((std::uint64_t{place} * splits + number) * kFours + four) * 128U + lane() % 32U * 4U;
  };
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < S::kSums; i += 4)
    *reinterpret_cast<FourFloats*>(four_at(part.number, i / 4U)) = {{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}};
  sync_warp();
  std::uint32_t before = 0;
  if (lane() % 32U == 0) {
    auto* const counter = reinterpret_cast<std::uint32_t*>(work.call->scratch - kCudaCounterBytes) + place;
    before = count_block(counter);
    if (before + 1U == splits) *counter = 0;
  }
  if (value_of_lane(before, 0) + 1U != splits) return false;
  SHUNT_UNROLL
  for (std::uint32_t first = 0; first < kFours; first += kTogether) {
    float totals[4 * kTogether]{};
    for (std::uint32_t number = 0; number < splits; ++number) {
      FourFloats fours[kTogether];
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < kTogether; ++i) fours[i] = fresh_four(four_at(number, first + i), true);
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 4 * kTogether; ++i) totals[i] += fours[i / 4U].values[i % 4U];
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4 * kTogether; ++i) sums[4U * first + i] = totals[i];
  }
  return true;
}

template <class S, class Work>
SHUNT_FUNCTION void store_part(const Work& work, const Part<S>& part, float (&sums)[S::kSums]) {
  if (work.splits() == 1 || add_parts(work, part, sums)) store_tile<S>(work, part.tile, sums);
}

template <class S, class Work>
SHUNT_FUNCTION void multiply_tiles(const Work& work, Rings<S>& rings) {
  using Layout = typename S::Layout;
  RingPlace<S::kWeightStages> weights_place;
  RingPlace<S::kPieceStages> piece_place;
  const ProductTiles first_piece = product_tiles(Rings<S>::piece_at(0));
  each_part<S>(work, [&](const Part<S>& part) __attribute__((always_inline)) {
    const std::uint32_t chunks = part.chunks;
    Weights<S> weights;
    float sums[S::kSums];
    float totals[S::kExact ? S::kSums : 1]{};
    bool adds = false;
    Barrier* unread = nullptr;  // of the stage whose products may not be over
    const auto take = [&](std::uint32_t chunk, std::uint32_t set) __attribute__((always_inline)) {
      const std::uint32_t of_stage = chunk % S::kStageChunks;
      if (of_stage == 0) rings.weights.await_full(weights_place);
      weights.read(set, Rings<S>::strip_at(weights_place.stage, lane() / 32U * 2U) + of_stage * Layout::kBytes);
      if (of_stage + 1U == S::kStageChunks || chunk + 1U == chunks) {
        leave(&rings.weights.empty[weights_place.stage]);
        weights_place.advance();
      }
      weights.choose(set, !adds, sums);
      SHUNT_UNROLL
      for (std::uint32_t step = 0; step < Layout::kColumns / kProductColumns; step += S::kSteps) {
        if (step % kStepsOfPiece == 0) rings.pieces.await_full(piece_place);
        const ProductTiles x = first_piece.after(piece_place.stage * S::kPieceBytes);
        std::uint32_t high[S::kSteps][4];
        std::uint32_t low[S::kSteps][4];
        SHUNT_UNROLL
        for (std::uint32_t i = 0; i < S::kSteps; ++i) weights.decode(set, step + i, high[i], low[i]);
        begin_products();
        SHUNT_UNROLL
        for (std::uint32_t i = 0; i < S::kSteps; ++i) {
          const ProductTiles columns = x.after((step + i) % kStepsOfPiece * kBytesOfProduct);
          multiply(sums, high[i], columns, adds);
          adds = true;
          if constexpr (S::kSplitsWeights) multiply(sums, low[i], columns, true);
          if constexpr (S::kExact) multiply(sums, high[i], columns.after(S::kHalfBytes), true);
        }
        end_products();
        await_products<1>();
        if (step % kStepsOfPiece == 0 && unread != nullptr) leave(unread);
        if ((step + S::kSteps) % kStepsOfPiece != 0) continue;
        unread = &rings.pieces.empty[piece_place.stage];
        piece_place.advance();
      }
      if constexpr (S::kExact) {
        if ((chunk + 1) % S::kChunksOfSum != 0 && chunk + 1 < chunks) return;
        await_products<0>();
        const float inverse[2] = {weights.inverse(0), weights.inverse(1)};
        SHUNT_UNROLL
        for (std::uint32_t i = 0; i < S::kSums; ++i) totals[i] += sums[i] * inverse[i / 2U % 2U];
        adds = false;
      }
    };
    std::uint32_t chunk = 0;
    for (; chunk + Weights<S>::kSets <= chunks; chunk += Weights<S>::kSets) {
      SHUNT_UNROLL
      for (std::uint32_t set = 0; set < Weights<S>::kSets; ++set) take(chunk + set, set);
    }
    if constexpr (Weights<S>::kSets > 1)
      if (chunk < chunks) take(chunk, 0);
    await_products<0>();
    leave(unread);
    if constexpr (!S::kExact) {
      const float inverse[2] = {weights.inverse(0), weights.inverse(1)};
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < S::kSums; ++i) sums[i] *= inverse[i / 2U % 2U];
    }
    if constexpr (S::kExact) {
      store_part(work, part, totals);
    } else {
      store_part(work, part, sums);
    }
  });
}

template <class S, class Work>
SHUNT_FUNCTION void multiply_weights(const Work& work) {
  SHUNT_SHARED Rings<S> rings;
  if (lane() == 0) {
    rings.weights.start(kReaders);
    rings.pieces.start(kReaders);
    publish_barriers();
  }
  sync();
  const std::uint32_t warp = lane() / 32U;
  if (warp >= kReaders) {
    give_registers<40>();
    if (warp < kReaders + kCopiers) copy_strips<S>(work, rings, warp - kReaders);
    if (lane() != (kReaders + kCopiers) * 32U) return;
    wait_for_earlier_kernels();
    copy_pieces<S>(work, rings);
    let_next_kernel_begin();
  } else {
    take_registers<232>();
    wait_for_earlier_kernels();
    multiply_tiles<S>(work, rings);
    work.finish();
  }
}

}  // namespace
}  // namespace shunt
