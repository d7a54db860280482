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

#include <type_traits>

#include "ops/attention/tile.h"
#include "ops/float_rows-inl.h"
#include "ops/math_simd-inl.h"
#include "ops/quantize/blocks_simd-inl.h"

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

// in [rows, columns] -> out [columns, rows]. REQUIRES: rows and columns are multiples of 4.
inline void transpose(const float* HWY_RESTRICT in, std::size_t in_stride, std::size_t rows, std::size_t columns,
                      float* HWY_RESTRICT out, std::size_t out_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < columns; ++i)
    for (std::size_t j = 0; j < rows; ++j) out[i * out_stride + j] = in[j * in_stride + i];
#else
  const hn::CappedTag<float, 4> d;
  for (std::size_t i = 0; i < columns; i += 4)
    for (std::size_t j = 0; j < rows; j += 4) {
      const float* corner = in + j * in_stride + i;
      const auto row0 = hn::Load(d, corner);
      const auto row1 = hn::Load(d, corner + in_stride);
      const auto row2 = hn::Load(d, corner + 2 * in_stride);
      const auto row3 = hn::Load(d, corner + 3 * in_stride);
      const auto low02 = hn::InterleaveLower(d, row0, row2);
      const auto low13 = hn::InterleaveLower(d, row1, row3);
      const auto high02 = hn::InterleaveUpper(d, row0, row2);
      const auto high13 = hn::InterleaveUpper(d, row1, row3);
      float* target = out + i * out_stride + j;
      hn::Store(hn::InterleaveLower(d, low02, low13), d, target);
      hn::Store(hn::InterleaveUpper(d, low02, low13), d, target + out_stride);
      hn::Store(hn::InterleaveLower(d, high02, high13), d, target + 2 * out_stride);
      hn::Store(hn::InterleaveUpper(d, high02, high13), d, target + 3 * out_stride);
    }
#endif
}

// Loads a vector of a head in the state as F32, from element i on.
struct LoadF32 {
  HWY_INLINE hn::Vec<Floats> operator()(const std::byte* head, std::size_t i) const {
    return hn::LoadU(Floats(), reinterpret_cast<const float*>(head) + i);
  }
};
struct LoadBF16 {
  HWY_INLINE hn::Vec<Floats> operator()(const std::byte* head, std::size_t i) const {
    const hn::Rebind<std::uint32_t, Floats> du;
    const hn::Rebind<std::uint16_t, Floats> dh;
    const auto bits = hn::LoadU(dh, reinterpret_cast<const std::uint16_t*>(head) + i);
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
  }
};
// REQUIRES: a block consists of whole vectors.
struct LoadBlocks {
  HWY_INLINE hn::Vec<Floats> operator()(const std::byte* head, std::size_t i) const {
    const Floats d;
    const std::byte* const block = head + i / 32 * sizeof(Q8_0Block);
    const auto quants = load_bytes<std::int8_t>(d, block + offsetof(Q8_0Block, quants) + i % 32);
    return hn::Mul(hn::ConvertTo(d, quants), hn::Set(d, scale_of(block)));
  }

 private:
  static HWY_INLINE float scale_of(const std::byte* block) {
    return hn::GetLane(load_f16(hn::FixedTag<float, 4>(), block));
  }
};
#if SHUNT_HAS_F16_VECTORS
struct LoadF16 {
  HWY_INLINE hn::Vec<Floats> operator()(const std::byte* head, std::size_t i) const {
    const hn::Rebind<hwy::float16_t, Floats> dh;
    const hn::Rebind<std::uint16_t, Floats> du;
    const auto bits = hn::LoadU(du, reinterpret_cast<const std::uint16_t*>(head) + i);
    return hn::PromoteTo(Floats(), hn::BitCast(dh, bits));
  }
};
#endif

// scores[row][key] = query[row] . key, for a few rows and keys, the keys read in place. query [kRows, width], scores
// [kRows, kTileKeys]. REQUIRES: the keys consist of whole vectors.
template <std::size_t kRows, std::size_t kKeys, class Load>
HWY_INLINE void dot_keys(const float* HWY_RESTRICT query, std::size_t width, const std::byte* const* keys,
                         std::size_t offset, std::size_t elements, float* HWY_RESTRICT scores) {
  const Floats d;
  const Load load;
  const std::byte* from[kKeys];
  for (std::size_t k = 0; k < kKeys; ++k) from[k] = keys[k] + offset;
  hn::Vec<Floats> sums[kRows][kKeys];
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t k = 0; k < kKeys; ++k) sums[r][k] = hn::Zero(d);
  for (std::size_t i = 0; i < elements; i += hn::Lanes(d)) {
    hn::Vec<Floats> key[kKeys];
    for (std::size_t k = 0; k < kKeys; ++k) key[k] = load(from[k], i);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto q = hn::Load(d, query + r * width + i);
      for (std::size_t k = 0; k < kKeys; ++k) sums[r][k] = hn::MulAdd(q, key[k], sums[r][k]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t k = 0; k < kKeys; ++k) scores[r * kTileKeys + k] = hn::GetLane(hn::SumOfLanes(d, sums[r][k]));
}

// sums[row] += weights[row][key] value[key], for a few rows and values, the values read in place. weights [kRows,
// kTileKeys], sums [kRows, width]. REQUIRES: the values consist of whole vectors.
template <std::size_t kRows, std::size_t kKeys, class Load>
HWY_INLINE void add_values(const float* HWY_RESTRICT weights, const std::byte* const* values, std::size_t offset,
                           std::size_t elements, std::size_t width, float* HWY_RESTRICT sums) {
  const Floats d;
  const Load load;
  const std::byte* from[kKeys];
  for (std::size_t k = 0; k < kKeys; ++k) from[k] = values[k] + offset;
  hn::Vec<Floats> weight[kRows][kKeys];
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t k = 0; k < kKeys; ++k) weight[r][k] = hn::Set(d, weights[r * kTileKeys + k]);
  for (std::size_t i = 0; i < elements; i += hn::Lanes(d)) {
    hn::Vec<Floats> value[kKeys];
    for (std::size_t k = 0; k < kKeys; ++k) value[k] = load(from[k], i);
    for (std::size_t r = 0; r < kRows; ++r) {
      // Several keys are summed before they are added, so that long sums stay precise.
      auto sum = hn::Mul(weight[r][0], value[0]);
      for (std::size_t k = 1; k < kKeys; ++k) sum = hn::MulAdd(weight[r][k], value[k], sum);
      hn::Store(hn::Add(hn::Load(d, sums + r * width + i), sum), d, sums + r * width + i);
    }
  }
}

// The rows of one key head when there are few: the head's offset in a position's row of state, and where the rows are
// in the scratch.
struct FewHeads {
  std::size_t offset = 0;  // bytes
  const float* query = nullptr;
  float* scores = nullptr;
  float* sums = nullptr;
};

// One tile for several key heads. Positions are the outer loop, so that neighbouring heads are read in memory order.
template <std::size_t kRows, class Load>
void dot_tile(const FewHeads* heads, std::size_t head_count, const std::byte* const* keys, std::size_t count,
              std::size_t elements, std::size_t width) {
  constexpr std::size_t kKeys = kRows == 4 ? 2 : 4;
  std::size_t j = 0;
  for (; j + kKeys <= count; j += kKeys)
    for (std::size_t h = 0; h < head_count; ++h)
      dot_keys<kRows, kKeys, Load>(heads[h].query, width, keys + j, heads[h].offset, elements, heads[h].scores + j);
  for (; j < count; ++j)
    for (std::size_t h = 0; h < head_count; ++h)
      dot_keys<kRows, 1, Load>(heads[h].query, width, keys + j, heads[h].offset, elements, heads[h].scores + j);
}

template <std::size_t kRows, class Load>
void add_tile(const FewHeads* heads, std::size_t head_count, const std::byte* const* values, std::size_t count,
              std::size_t elements, std::size_t width) {
  constexpr std::size_t kKeys = kRows == 4 ? 2 : 4;
  std::size_t j = 0;
  for (; j + kKeys <= count; j += kKeys)
    for (std::size_t h = 0; h < head_count; ++h)
      add_values<kRows, kKeys, Load>(heads[h].scores + j, values + j, heads[h].offset, elements, width, heads[h].sums);
  for (; j < count; ++j)
    for (std::size_t h = 0; h < head_count; ++h)
      add_values<kRows, 1, Load>(heads[h].scores + j, values + j, heads[h].offset, elements, width, heads[h].sums);
}

// Replaces scores by cap tanh(score / cap). REQUIRES: whole vectors.
inline void cap_scores(float cap, float* HWY_RESTRICT scores, std::size_t count) {
  const Floats d;
  const auto caps = hn::Set(d, cap);
  const auto inverse = hn::Set(d, 1.0F / cap);
  for (std::size_t j = 0; j < count; j += hn::Lanes(d))
    hn::Store(hn::Mul(math::tanh(d, hn::Mul(hn::Load(d, scores + j), inverse)), caps), d, scores + j);
}

// The online softmax of one row (https://arxiv.org/abs/2205.14135). Turns scores [kTileKeys] into weights, ignoring
// those from `seen` on, and rescales the earlier sums.
inline void weigh_row(std::size_t seen, std::size_t width, float& row_largest, float& row_total,
                      float* HWY_RESTRICT scores, float* HWY_RESTRICT sums) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t j = seen; j < kTileKeys; ++j) scores[j] = -std::numeric_limits<float>::infinity();
  auto largest = hn::Set(d, row_largest);
  for (std::size_t j = 0; j < kTileKeys; j += lanes) {
    const auto score = hn::Load(d, scores + j);
    largest = hn::IfThenElse(hn::Gt(score, largest), score, largest);
  }
  const float shift = hn::GetLane(hn::MaxOfLanes(d, largest));
  const auto shifts = hn::Set(d, shift);
  auto total = hn::Zero(d);
  for (std::size_t j = 0; j < kTileKeys; j += lanes) {
    const auto weight = math::exp_below_zero(d, hn::Sub(hn::Load(d, scores + j), shifts));
    total = hn::Add(total, weight);
    hn::Store(weight, d, scores + j);
  }
  const float sum = hn::GetLane(hn::SumOfLanes(d, total));
  if (shift == row_largest) {
    row_total += sum;
    return;
  }
  const auto shrinks = math::exp_below_zero(d, hn::Sub(hn::Set(d, row_largest), shifts));
  row_total = row_total * hn::GetLane(shrinks) + sum;
  row_largest = shift;
  for (std::size_t i = 0; i < width; i += lanes) hn::Store(hn::Mul(hn::Load(d, sums + i), shrinks), d, sums + i);
}

// The online softmax of a vector of rows. Turns their scores [keys, kSlabRows] into weights, and returns the factors
// for the earlier sums.
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
