// Attention's work on one tile of keys or values in F32; compiled once per instruction set.
//
// Rows are padded with zeros to whole vectors. Rows that fill up a block of a product may hold anything; they are never
// stored. Pointers are aligned to vectors. Included by attention_simd.cpp after hwy/highway.h, within foreach_target.
#if defined(SHUNT_OPS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_ATTENTION_TILE_INL_H_
#undef SHUNT_OPS_ATTENTION_TILE_INL_H_
#else
#define SHUNT_OPS_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <span>
#include <type_traits>

#include "ops/attention/tile.h"
#include "ops/float_rows-inl.h"
#include "ops/math_simd-inl.h"
#include "ops/quantize/blocks_simd-inl.h"
#include "ops/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace tiles {

using namespace shunt::attention;

// Vectors of columns that a product keeps in registers for each of its rows: of values, and of rows of queries.
constexpr std::size_t kValueVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;
constexpr std::size_t kQueryVectors = HWY_TARGET == HWY_AVX3 ? 3 : kValueVectors;

// The left operand of a product: element [row, k] is at[row * row_stride + k * step].
struct Left {
  const float* at;
  std::size_t row_stride;
  std::size_t step;
};

// c [kMultiplyRows, kVectors] (+)= a [kMultiplyRows, depth] b [depth, kVectors]. Stays a call: inlined into a larger
// function, gcc 12 has too few registers for its loop and loads the right operand again for every row.
template <std::size_t kVectors, bool kAccumulate>
HWY_NOINLINE void multiply_block(Left a, const float* HWY_RESTRICT b, std::size_t b_stride, std::size_t depth,
                                 float* HWY_RESTRICT c, std::size_t c_stride) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Floats> sums[kMultiplyRows][kVectors];
  for (std::size_t r = 0; r < kMultiplyRows; ++r)
    for (std::size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  for (std::size_t k = 0; k < depth; ++k) {
    hn::Vec<Floats> right[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) right[v] = hn::Load(d, b + k * b_stride + v * lanes);
    for (std::size_t r = 0; r < kMultiplyRows; ++r) {
      const auto left = hn::Set(d, a.at[r * a.row_stride + k * a.step]);
      for (std::size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
    }
  }
  // The old value is added last, so that long sums stay precise.
  for (std::size_t r = 0; r < kMultiplyRows; ++r)
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const to = c + r * c_stride + v * lanes;
      hn::Store(kAccumulate ? hn::Add(hn::Load(d, to), sums[r][v]) : sums[r][v], d, to);
    }
}

// Calls use(vectors, column) for neighbouring vectors that cover `columns`: kVectors at a time, then one. REQUIRES:
// whole vectors.
template <std::size_t kVectors, class Use>
HWY_INLINE void for_each_columns(std::size_t columns, Use use) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t column = 0;
  for (; column + kVectors * lanes <= columns; column += kVectors * lanes)
    use(std::integral_constant<std::size_t, kVectors>(), column);
  for (; column < columns; column += lanes) use(std::integral_constant<std::size_t, 1>(), column);
}

// Load vector v of those of a head in the cache that begin at element i, as F32. kVectors of them are best loaded
// together. REQUIRES: i is a multiple of as many elements as are loaded together.
struct LoadF32 {
  static constexpr std::size_t kVectors = 1;
  HWY_INLINE hn::Vec<Floats> operator()(const std::byte* head, std::size_t i, std::size_t v) const {
    const Floats d;
    return hn::LoadU(d, reinterpret_cast<const float*>(head) + i + v * hn::Lanes(d));
  }
};
struct LoadBF16 {
  static constexpr std::size_t kVectors = 1;
  HWY_INLINE hn::Vec<Floats> operator()(const std::byte* head, std::size_t i, std::size_t v) const {
    const Floats d;
    return load_bf16(d, head + 2 * (i + v * hn::Lanes(d)));
  }
};
// Vectors that are loaded together are parts of a block, or whole blocks, each of which has its scale loaded once.
struct LoadBlocks {
  static constexpr std::size_t kVectors =
      std::max<std::size_t>(1, std::min<std::size_t>(4, 32 / hn::MaxLanes(Floats())));
  HWY_INLINE hn::Vec<Floats> operator()(const std::byte* head, std::size_t i, std::size_t v) const {
    const Floats d;
    const std::byte* const block = head + (i / 32 + v * hn::Lanes(d) / 32) * sizeof(Q8_0Block);
    const std::byte* const at = block + offsetof(Q8_0Block, quants) + i % 32 + v * hn::Lanes(d) % 32;
    const auto scale = hn::Set(d, hn::GetLane(load_f16(hn::FixedTag<float, 4>(), block)));
    return hn::Mul(hn::ConvertTo(d, load_bytes<std::int8_t>(d, at)), scale);
  }
};
struct LoadF16 {
  static constexpr std::size_t kVectors = 1;
  HWY_INLINE hn::Vec<Floats> operator()(const std::byte* head, std::size_t i, std::size_t v) const {
    const Floats d;
    return load_f16(d, head + 2 * (i + v * hn::Lanes(d)));
  }
};

// The sum of the first lanes of all 128 bits, of the second lanes, and so on.
template <class D>
HWY_INLINE hn::Vec<hn::CappedTag<float, 4>> sum_of_blocks(D d, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}

// Stores the sums of the lanes of four vectors, each summed in the same order.
HWY_INLINE void store_sums(const hn::Vec<Floats> (&x)[4], float* HWY_RESTRICT to) {
  const Floats d;
  if constexpr (hn::MaxLanes(d) < 4) {
    for (std::size_t i = 0; i < 4; ++i) to[i] = hn::GetLane(hn::SumOfLanes(d, x[i]));
  } else {
    const hn::Repartition<std::uint64_t, Floats> pairs;
    const auto low =
        hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, x[0], x[1]), hn::InterleaveUpper(d, x[0], x[1])));
    const auto high =
        hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, x[2], x[3]), hn::InterleaveUpper(d, x[2], x[3])));
    const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                              hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)));
    hn::StoreU(sum_of_blocks(d, sums), hn::CappedTag<float, 4>(), to);
  }
}

// Prefetches a key and a value of so many bytes.
HWY_INLINE void prefetch_heads(const std::byte* key, const std::byte* value, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) {
    hwy::Prefetch(key + at);
    hwy::Prefetch(value + at);
  }
}

// Few rows of several key heads, kRows of each one after the other.
struct FewRows {
  std::size_t width = 0;     // of queries and sums, of whole vectors
  std::size_t elements = 0;  // of a head in the cache, whole vectors
  std::size_t bytes = 0;     // of a head in the cache; 0: nothing is fetched ahead
  std::size_t heads = 0;
  std::size_t offsets[kSlabRows];  // of the heads in a position's row of the cache, in bytes
  const float* query = nullptr;    // [heads kRows, width]
  float* sums = nullptr;           // [heads kRows, width]
};

// The positions from `begin` to `end` of a tile, all that few rows see of it. Keys and values are read in place.
struct FewTile {
  const std::byte* const* keys = nullptr;
  const std::byte* const* values = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;
  float* scores = nullptr;  // [kTileKeys, kSlabRows]
};

// Rows whose products are computed at once: of keys, and of values.
constexpr std::size_t kRowsAtOnce = HWY_TARGET == HWY_AVX3 ? 8 : 4;

// scores[row] = query[row] . key of the row's head, for kRows rows of kHeads heads, whose keys are at `from`.
template <std::size_t kRows, std::size_t kHeads, class Load>
HWY_INLINE void dot_heads(const std::byte* const (&from)[kHeads], const float* HWY_RESTRICT query, std::size_t width,
                          std::size_t elements, float* HWY_RESTRICT scores) {
  static_assert(kRows * kHeads % 4 == 0);
  const Floats d;
  const Load load;
  hn::Vec<Floats> sums[kRows * kHeads / 4][4];
  for (auto& four : sums)
    for (auto& sum : four) sum = hn::Zero(d);
  for (std::size_t i = 0; i < elements; i += Load::kVectors * hn::Lanes(d))
    for (std::size_t h = 0; h < kHeads; ++h)
      for (std::size_t v = 0; v < Load::kVectors; ++v) {
        const auto key = load(from[h], i, v);
        for (std::size_t r = h * kRows; r < (h + 1) * kRows; ++r)
          sums[r / 4][r % 4] =
              hn::MulAdd(hn::Load(d, query + r * width + i + v * hn::Lanes(d)), key, sums[r / 4][r % 4]);
      }
  for (std::size_t four = 0; four < kRows * kHeads / 4; ++four) store_sums(sums[four], scores + 4 * four);
}

// The scores of one key. Meanwhile, keys two positions further and the value are fetched: reading two places at once,
// processors use more of their bandwidth. Stays a call, as add_columns() does: inlined into a larger function, gcc 12
// has too few registers and keeps addresses in those of vectors.
template <std::size_t kRows, class Load>
HWY_NOINLINE void dot_key(const FewRows& few, const FewTile& tile, std::size_t position) {
  constexpr std::size_t kOfHead = std::min(kRows, kRowsAtOnce);
  constexpr std::size_t kHeads = std::max<std::size_t>(1, 4 / kOfHead);
  const std::byte* const key_ahead = tile.keys[std::min(position + 2, tile.end - 1)];
  const std::byte* const key = tile.keys[position];
  const std::byte* const value = tile.values[position];
  const float* query = few.query;
  float* scores = tile.scores + position * kSlabRows;
  for (std::size_t head = 0; head < few.heads; head += kHeads) {
    const std::byte* from[kHeads];
    for (std::size_t h = 0; h < kHeads; ++h) {
      const std::size_t offset = few.offsets[std::min(head + h, few.heads - 1)];
      from[h] = key + offset;
      prefetch_heads(key_ahead + offset, value + offset, few.bytes);
    }
    for (std::size_t row = 0; row < kHeads * kRows; row += kHeads * kOfHead) {
      dot_heads<kOfHead, kHeads, Load>(from, query, few.width, few.elements, scores);
      query += kHeads * kOfHead * few.width;
      scores += kHeads * kOfHead;
    }
  }
}

// sums[row] += scores[row] value, for positions from `begin` to `end` of a tile, and for kVectors of the columns of
// kRows rows of a head.
template <std::size_t kRows, std::size_t kVectors, class Load>
HWY_NOINLINE void add_columns(const FewRows& few, const FewTile& tile, std::size_t begin, std::size_t end,
                              std::size_t head, std::size_t row, std::size_t column) {
  const Floats d;
  const Load load;
  hn::Vec<Floats> found[kRows][kVectors];
  for (auto& of_row : found)
    for (auto& sum : of_row) sum = hn::Zero(d);
  const std::size_t offset = few.offsets[head];
  const std::byte* const* const values = tile.values;
  const float* weights = tile.scores + begin * kSlabRows + row;
  for (std::size_t j = begin; j < end; ++j, weights += kSlabRows) {
    const std::byte* const from = values[j] + offset;
    hn::Vec<Floats> value[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) value[v] = load(from, column, v);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto weight = hn::Set(d, weights[r]);
      for (std::size_t v = 0; v < kVectors; ++v) found[r][v] = hn::MulAdd(weight, value[v], found[r][v]);
    }
  }
  // The sum of some values is added at once, so that long sums stay precise.
  const std::size_t width = few.width;
  float* const sums = few.sums + row * width + column;
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const to = sums + r * width + v * hn::Lanes(d);
      hn::Store(hn::Add(hn::Load(d, to), found[r][v]), d, to);
    }
}

// Computes the scores of a tile, and adds the values of the one before, times their weights: the former waits for
// memory, the latter does not. A few keys, and the values of so many positions and of as large a share of the heads,
// take turns. Either tile may be empty.
template <std::size_t kRows, class Load>
void see_tiles(const FewRows& few, const FewTile& before, const FewTile& tile) {
  constexpr std::size_t kAtOnce = 16;  // positions
  constexpr std::size_t kOfHead = std::min(kRows, kRowsAtOnce);
  // Eight rows leave registers for two vectors of each.
  constexpr std::size_t kVectors = kOfHead > 4 ? 2 : kValueVectors;
  for (std::size_t first = 0; first < kTileKeys; first += kAtOnce) {
    const std::size_t begin = std::max(first, before.begin);
    const std::size_t end = std::min(first + kAtOnce, before.end);
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      if (first + i >= tile.begin && first + i < tile.end) dot_key<kRows, Load>(few, tile, first + i);
      if (begin >= end) continue;
      for (std::size_t head = few.heads * i / kAtOnce; head < few.heads * (i + 1) / kAtOnce; ++head)
        for (std::size_t row = head * kRows; row < (head + 1) * kRows; row += kOfHead)
          for_each_columns<kVectors>(few.elements, [&](auto vectors, std::size_t column) HWY_ATTR {
            add_columns<kOfHead, vectors, Load>(few, before, begin, end, head, row, column);
          });
    }
  }
}

// Replaces scores by cap tanh(score / cap). REQUIRES: whole vectors.
inline void cap_scores(float cap, float* HWY_RESTRICT scores, std::size_t count) {
  const Floats d;
  const auto caps = hn::Set(d, cap);
  const auto inverse = hn::Set(d, 1.0F / cap);
  for (std::size_t j = 0; j < count; j += hn::Lanes(d))
    hn::Store(hn::Mul(math::tanh(d, hn::Mul(hn::Load(d, scores + j), inverse)), caps), d, scores + j);
}

// The online softmax (https://arxiv.org/abs/2205.14135) of a vector of rows. Turns their scores [keys, kSlabRows] into
// weights, and returns the factors for the earlier sums.
inline hn::Vec<Floats> weigh_rows(std::size_t keys, float* HWY_RESTRICT row_largest, float* HWY_RESTRICT row_totals,
                                  float* HWY_RESTRICT scores) {
  const Floats d;
  const auto before = hn::Load(d, row_largest);
  auto largest = before;
  for (std::size_t j = 0; j < keys; ++j) {
    const auto score = hn::Load(d, scores + j * kSlabRows);
    largest = hn::IfThenElse(hn::Gt(score, largest), score, largest);
  }
  auto total = hn::Zero(d);
  for (std::size_t j = 0; j < keys; ++j) {
    const auto weight = math::exp_below_zero(d, hn::Sub(hn::Load(d, scores + j * kSlabRows), largest));
    total = hn::Add(total, weight);
    hn::Store(weight, d, scores + j * kSlabRows);
  }
  const auto shrinks =
      hn::IfThenElse(hn::Eq(before, largest), hn::Set(d, 1.0F), math::exp_below_zero(d, hn::Sub(before, largest)));
  hn::Store(largest, d, row_largest);
  hn::Store(hn::MulAdd(hn::Load(d, row_totals), shrinks, total), d, row_totals);
  return shrinks;
}

// REQUIRES: whole vectors.
inline void scale_row(float factor, std::size_t elements, float* row) {
  const Floats d;
  const auto factors = hn::Set(d, factor);
  for (std::size_t i = 0; i < elements; i += hn::Lanes(d))
    hn::Store(hn::Mul(hn::Load(d, row + i), factors), d, row + i);
}

}  // namespace tiles
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif
