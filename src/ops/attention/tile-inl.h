// What attention does with one tile of keys or values in F32; compiled once per instruction set.
//
// Rows are padded to whole vectors with zeros, so nothing here has a remainder; all pointers are aligned to 64.
// Included by attention_simd.cpp after hwy/highway.h, within foreach_target.
#if defined(SHUNT_OPS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_ATTENTION_TILE_INL_H_
#undef SHUNT_OPS_ATTENTION_TILE_INL_H_
#else
#define SHUNT_OPS_ATTENTION_TILE_INL_H_
#endif

#include "ops/attention/tile.h"
#include "ops/float_rows-inl.h"
#include "ops/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace tiles {

using namespace shunt::attention;

// Rows and vectors of the block of results that multiply() keeps in registers.
constexpr std::size_t kMultiplyVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;

template <std::size_t kVectors>
HWY_INLINE void multiply_block(const float* HWY_RESTRICT a, std::size_t a_stride, const float* HWY_RESTRICT b,
                               std::size_t b_stride, std::size_t depth, bool accumulate, float* HWY_RESTRICT c,
                               std::size_t c_stride) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Floats> sums[kMultiplyRows][kVectors];
  for (std::size_t r = 0; r < kMultiplyRows; ++r)
    for (std::size_t v = 0; v < kVectors; ++v)
      sums[r][v] = accumulate ? hn::Load(d, c + r * c_stride + v * lanes) : hn::Zero(d);
  for (std::size_t k = 0; k < depth; ++k) {
    hn::Vec<Floats> right[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) right[v] = hn::Load(d, b + k * b_stride + v * lanes);
    for (std::size_t r = 0; r < kMultiplyRows; ++r) {
      const auto left = hn::Set(d, a[r * a_stride + k]);
      for (std::size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
    }
  }
  for (std::size_t r = 0; r < kMultiplyRows; ++r)
    for (std::size_t v = 0; v < kVectors; ++v) hn::Store(sums[r][v], d, c + r * c_stride + v * lanes);
}

// c [rows, columns] (+)= a [rows, depth] b [depth, columns]. REQUIRES: whole blocks of rows, whole vectors of columns.
inline void multiply(const float* a, std::size_t a_stride, const float* b, std::size_t b_stride, std::size_t rows,
                     std::size_t depth, std::size_t columns, bool accumulate, float* c, std::size_t c_stride) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t column = 0;
  for (; column + kMultiplyVectors * lanes <= columns; column += kMultiplyVectors * lanes)
    for (std::size_t row = 0; row < rows; row += kMultiplyRows)
      multiply_block<kMultiplyVectors>(a + row * a_stride, a_stride, b + column, b_stride, depth, accumulate,
                                       c + row * c_stride + column, c_stride);
  for (; column < columns; column += lanes)
    for (std::size_t row = 0; row < rows; row += kMultiplyRows)
      multiply_block<1>(a + row * a_stride, a_stride, b + column, b_stride, depth, accumulate,
                        c + row * c_stride + column, c_stride);
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

// scores [kRows, kTileKeys] = query [kRows, width] keys [count, width]^T, by one dot product each.
template <std::size_t kRows>
void dot_rows(const float* HWY_RESTRICT query, const float* HWY_RESTRICT keys, std::size_t count, std::size_t width,
              float* HWY_RESTRICT scores) {
  const Floats d;
  for (std::size_t j = 0; j < count; ++j) {
    hn::Vec<Floats> sums[kRows];
    for (std::size_t r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
    for (std::size_t i = 0; i < width; i += hn::Lanes(d)) {
      const auto key = hn::Load(d, keys + j * width + i);
      for (std::size_t r = 0; r < kRows; ++r) sums[r] = hn::MulAdd(hn::Load(d, query + r * width + i), key, sums[r]);
    }
    for (std::size_t r = 0; r < kRows; ++r) scores[r * kTileKeys + j] = hn::GetLane(hn::SumOfLanes(d, sums[r]));
  }
}

template <std::size_t kRows, std::size_t kVectors>
HWY_INLINE void add_block(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values, std::size_t count,
                          std::size_t width, float* HWY_RESTRICT sums) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Floats> total[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t v = 0; v < kVectors; ++v) total[r][v] = hn::Load(d, sums + r * width + v * lanes);
  for (std::size_t j = 0; j < count; ++j) {
    hn::Vec<Floats> value[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) value[v] = hn::Load(d, values + j * width + v * lanes);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto weight = hn::Set(d, weights[r * kTileKeys + j]);
      for (std::size_t v = 0; v < kVectors; ++v) total[r][v] = hn::MulAdd(weight, value[v], total[r][v]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t v = 0; v < kVectors; ++v) hn::Store(total[r][v], d, sums + r * width + v * lanes);
}

// sums [kRows, width] += weights [kRows, kTileKeys] values [count, width].
template <std::size_t kRows>
void add_rows(const float* weights, const float* values, std::size_t count, std::size_t width, float* sums) {
  constexpr std::size_t kVectors = kRows <= 2 ? 4 : 2;
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + kVectors * lanes <= width; i += kVectors * lanes)
    add_block<kRows, kVectors>(weights, values + i, count, width, sums + i);
  for (; i < width; i += lanes) add_block<kRows, 1>(weights, values + i, count, width, sums + i);
}

// The online softmax of one row (https://arxiv.org/abs/2205.14135): turns scores [kTileKeys], of which those from
// `seen` on do not count, into weights, and brings what was summed before to the new scale.
inline void weigh_row(std::size_t seen, std::size_t width, RowState& state, float* HWY_RESTRICT scores,
                      float* HWY_RESTRICT sums) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t j = seen; j < kTileKeys; ++j) scores[j] = -std::numeric_limits<float>::infinity();
  auto largest = hn::Set(d, state.largest);
  for (std::size_t j = 0; j < kTileKeys; j += lanes) {
    const auto score = hn::Load(d, scores + j);
    largest = hn::IfThenElse(hn::Gt(score, largest), score, largest);
  }
  const float shift = hn::GetLane(hn::MaxOfLanes(d, largest));
  const auto shifts = hn::Set(d, shift);
  auto total = hn::Zero(d);
  for (std::size_t j = 0; j < kTileKeys; j += lanes) {
    const auto weight = math::exp(d, hn::Sub(hn::Load(d, scores + j), shifts));
    total = hn::Add(total, weight);
    hn::Store(weight, d, scores + j);
  }
  const float sum = hn::GetLane(hn::SumOfLanes(d, total));
  if (shift == state.largest) {
    state.total += sum;
    return;
  }
  const float shrink = std::exp(state.largest - shift);
  state.total = state.total * shrink + sum;
  state.largest = shift;
  const auto shrinks = hn::Set(d, shrink);
  for (std::size_t i = 0; i < width; i += lanes) hn::Store(hn::Mul(hn::Load(d, sums + i), shrinks), d, sums + i);
}

}  // namespace tiles
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif
