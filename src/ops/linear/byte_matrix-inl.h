// The tile of linear in bytes by matrix instructions of Arm (i8mm), which multiply two weight rows by two token rows,
// eight elements at a time. Included by byte_tile-inl.h, once per instruction set.
#if defined(SHUNT_OPS_BYTE_MATRIX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_BYTE_MATRIX_INL_H_
#undef SHUNT_OPS_BYTE_MATRIX_INL_H_
#else
#define SHUNT_OPS_BYTE_MATRIX_INL_H_
#endif

#include "ops/linear/byte_blocking.h"
#include "ops/linear/byte_dot-inl.h"

#undef SHUNT_HAS_BYTE_MATRIX
#define SHUNT_HAS_BYTE_MATRIX (HWY_TARGET == HWY_NEON && SHUNT_HAS_BYTE_DOT)

#if SHUNT_HAS_BYTE_MATRIX
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Weight rows side by side, eight bytes of each together. Numbers of a row stand there twice, once for each token row
// of a pair.
struct MatrixStrip {
  alignas(64) std::uint8_t bytes[kByteElements / 8][kByteStripRows][8];
  alignas(64) float scales[kByteElements / 16][2 * kByteStripRows];
  alignas(64) float offsets[kByteElements / 16][2 * kByteStripRows];

  HWY_INLINE void put_scale(std::size_t group, std::size_t row, float scale, float offset) {
    for (std::size_t i = 2 * row; i < 2 * row + 2; ++i) {
      scales[group][i] = scale;
      offsets[group][i] = offset;
    }
  }
};
static_assert(sizeof(MatrixStrip) <= kByteStripBytes);

// Puts `bytes` of kBlockLanes unpacked rows side by side, as rows `first` and following of the strip.
template <std::size_t kRowBytes>
HWY_INLINE void put_side_by_side(const std::uint8_t (*rows)[kRowBytes], std::size_t bytes, std::size_t first,
                                 MatrixStrip& strip) {
  const hn::FixedTag<std::uint64_t, 2> d;
  const auto at = [&](std::size_t row, std::size_t k) {
    return hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(rows[row] + k));
  };
  const auto store = [&](std::size_t eight, std::size_t row, hn::Vec<decltype(d)> v) {
    hn::StoreU(v, d, reinterpret_cast<std::uint64_t*>(strip.bytes[eight][first + row]));
  };
  for (std::size_t k = 0; k < bytes; k += 16)
    for (std::size_t row = 0; row < kBlockLanes; row += 2) {
      store(k / 8, row, hn::InterleaveLower(d, at(row, k), at(row + 1, k)));
      store(k / 8 + 1, row, hn::InterleaveUpper(d, at(row, k), at(row + 1, k)));
    }
}

// Stands for these instructions where a dot is chosen.
struct MatrixDot {
  using Strip = MatrixStrip;

  template <std::size_t kMost, std::size_t kGroup>
  static constexpr std::size_t steps() {
    return kGroup / 8;
  }
};

// Returns whether this processor has the instructions.
HWY_INLINE bool multiplies_matrices() { return cpu_features().arm_matrices; }

// Tells the assembler of usmmla. For GNU's this lasts to the end of the file, so it must allow all that a compiler may
// use on processors without i8mm.
#ifdef __ARM_FEATURE_MATMUL_INT8
#define SHUNT_KNOW_USMMLA ""
#else
#define SHUNT_KNOW_USMMLA ".arch armv8.6-a+crypto+fp16+sve\n\t"
#endif

// Returns sum + the products of two rows of weights and two of tokens: the first row's by both tokens come first.
// Written in assembly for the same reason as FoursDot.
HWY_INLINE LaneSums add_matrix(LaneSums sum, WeightBytes w, hn::Vec<hn::FixedTag<std::int8_t, 16>> x) {
  asm(SHUNT_KNOW_USMMLA "usmmla %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(w.raw), "w"(x.raw));
  return sum;
}
#undef SHUNT_KNOW_USMMLA

template <class D>
HWY_INLINE hn::Vec<D> alternate(D d, hn::TFromD<D> first, hn::TFromD<D> second) {
  return hn::InterleaveLower(d, hn::Set(d, first), hn::Set(d, second));
}

// sums[t][r] (+)= strip[r][..] * x[t][..] for kPairs pairs of token rows, from `row` on; for the first row alone if
// kIsOne.
template <std::size_t kGroup, bool kHasOffsets, std::size_t kPairs, bool kIsOne>
HWY_NOINLINE void matrix_tile(const MatrixStrip& strip, const RoundedX& x, std::size_t row, std::size_t block,
                              std::size_t elements, float* HWY_RESTRICT sums) {
  static_assert(!kIsOne || kPairs == 1);
  const BlockTag d;
  const hn::RebindToSigned<BlockTag> di;
  const hn::FixedTag<std::uint8_t, 16> du8;
  const hn::FixedTag<std::int8_t, 16> d8;
  const hn::Half<decltype(d8)> half;
  constexpr std::size_t kEights = kGroup / 8;
  constexpr std::size_t kRowPairs = kByteStripRows / 2;
  constexpr std::size_t kSecond = kIsOne ? 0 : 1;  // a row alone is its own pair
  const std::int8_t* const bytes = x.block(block, row);
  BlockVec totals[kPairs][kRowPairs];
  HWY_UNROLL(3) for (std::size_t p = 0; p < kPairs; ++p) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) {
      const float* const sum = sums + 2 * p * kByteBlockRows + v * kBlockLanes;
      const auto first = block == 0 ? hn::Zero(d) : hn::LoadU(d, sum);
      const auto second = block == 0 ? hn::Zero(d) : hn::LoadU(d, sum + kSecond * kByteBlockRows);
      totals[p][2 * v] = hn::InterleaveLower(d, first, second);
      totals[p][2 * v + 1] = hn::InterleaveUpper(d, first, second);
    }
  }
  for (std::size_t g = 0; g < elements / kGroup; ++g) {
    const float* const x_scales = &x.scale(block * (kByteElements / kByteXGroup) + g * kGroup / kByteXGroup, row);
    const GroupSum* const x_sums = &x.sum(block * (kByteElements / kGroup) + g, row);
    LaneSums products[kPairs][kRowPairs];
    HWY_UNROLL(3) for (std::size_t p = 0; p < kPairs; ++p) {
      const auto start =
          kHasOffsets ? hn::Zero(di) : alternate(di, x_sums[2 * p].below_centre, x_sums[2 * p + kSecond].below_centre);
      HWY_UNROLL(4) for (std::size_t r = 0; r < kRowPairs; ++r) products[p][r] = start;
    }
    HWY_UNROLL(4) for (std::size_t k = 0; k < kEights; ++k) {
      WeightBytes w[kRowPairs];
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < kRowPairs; ++r) w[r] = hn::Load(du8, strip.bytes[g * kEights + k][2 * r]);
      HWY_UNROLL(3) for (std::size_t p = 0; p < kPairs; ++p) {
        const std::int8_t* const from = bytes + 2 * p * kByteElements + g * kGroup + 8 * k;
        const auto pair = hn::Combine(d8, hn::LoadU(half, from + kSecond * kByteElements), hn::LoadU(half, from));
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < kRowPairs; ++r) products[p][r] = add_matrix(products[p][r], w[r], pair);
      }
    }
    HWY_UNROLL(3) for (std::size_t p = 0; p < kPairs; ++p) {
      const auto scale = alternate(d, x_scales[2 * p], x_scales[2 * p + kSecond]);
      HWY_UNROLL(4) for (std::size_t r = 0; r < kRowPairs; ++r) {
        const auto both = hn::Mul(scale, hn::Load(d, strip.scales[g] + r * kBlockLanes));
        totals[p][r] = hn::MulAdd(hn::ConvertTo(d, products[p][r]), both, totals[p][r]);
      }
      if constexpr (kHasOffsets) {
        const auto sum = alternate(d, x_sums[2 * p].times_scale, x_sums[2 * p + kSecond].times_scale);
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < kRowPairs; ++r)
          totals[p][r] = hn::MulAdd(sum, hn::Load(d, strip.offsets[g] + r * kBlockLanes), totals[p][r]);
      }
    }
  }
  HWY_UNROLL(3) for (std::size_t p = 0; p < kPairs; ++p) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < 2; ++v) {
      float* const sum = sums + 2 * p * kByteBlockRows + v * kBlockLanes;
      hn::StoreU(hn::ConcatEven(d, totals[p][2 * v + 1], totals[p][2 * v]), d, sum);
      if constexpr (!kIsOne)
        hn::StoreU(hn::ConcatOdd(d, totals[p][2 * v + 1], totals[p][2 * v]), d, sum + kByteBlockRows);
    }
  }
}

// Multiplies a strip by all token rows.
template <class Dot, std::size_t kGroup, std::size_t, bool kHasOffsets>
HWY_INLINE void multiply_strip(const MatrixStrip& strip, const RoundedX& x, std::size_t block, std::size_t elements,
                               float* sums) {
  std::size_t t = 0;
  for (; t + 6 <= x.rows; t += 6)
    matrix_tile<kGroup, kHasOffsets, 3, false>(strip, x, t, block, elements, sums + t * kByteBlockRows);
  for (; t + 2 <= x.rows; t += 2)
    matrix_tile<kGroup, kHasOffsets, 1, false>(strip, x, t, block, elements, sums + t * kByteBlockRows);
  if (t < x.rows) matrix_tile<kGroup, kHasOffsets, 1, true>(strip, x, t, block, elements, sums + t * kByteBlockRows);
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_BYTE_MATRIX

#endif  // per-target include guard
