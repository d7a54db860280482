// linear in words, for many token rows, on Arm: tiles in bytes (byte_tile-inl.h) multiply the high bytes of x and the
// low ones as if they were two token rows, whose sums are added at the end. Included by row_products_simd.cpp, once per
// instruction set.
#if defined(SHUNT_OPS_SPLIT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_SPLIT_TILE_INL_H_
#undef SHUNT_OPS_SPLIT_TILE_INL_H_
#else
#define SHUNT_OPS_SPLIT_TILE_INL_H_
#endif

#include "ops/linear/byte_tile-inl.h"
#include "ops/linear/few_tokens-inl.h"
#include "ops/linear/split_dotprod-inl.h"

#undef SHUNT_HAS_SPLIT_TILES
#define SHUNT_HAS_SPLIT_TILES SHUNT_HAS_SPLIT_DOTPROD

#if SHUNT_HAS_SPLIT_TILES
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Rounds 256 elements of a token row, to the same integers as round_split(): the high bytes become row 2 * row of `to`.
static HWY_NOINLINE void round_to_byte_rows(const float* x, const ByteGroups& groups, const RoundedX& to,
                                            std::size_t row, std::size_t block) {
  const hn::RebindToSigned<BlockTag> di;
  const WordScale scale = word_scale(x);
  std::int8_t* const high = to.block(block, 2 * row);
  std::int8_t* const low = to.block(block, 2 * row + 1);
  for (std::size_t i = 0; i < kWordBlock; i += kByteXGroup) {
    const std::size_t group = block * (kByteElements / kByteXGroup) + i / kByteXGroup;
    to.scale(group, 2 * row) = 256 * scale.scale;
    to.scale(group, 2 * row + 1) = scale.scale;
  }
  for (std::size_t begin = 0; begin < kWordBlock; begin += groups.elements) {
    std::int32_t highs = 0;
    std::int32_t lows = 0;
    for (std::size_t i = begin; i < begin + groups.elements; i += 16) {
      const SplitSum sum = split_sixteen(x + i, hn::Set(BlockTag(), scale.inverse), high + i, low + i);
      highs += hn::GetLane(hn::SumOfLanes(di, sum.high));
      lows += hn::GetLane(hn::SumOfLanes(di, sum.low));
    }
    const std::size_t group = block * (kByteElements / groups.elements) + begin / groups.elements;
    to.sum(group, 2 * row).below_centre = -groups.centre * highs;
    to.sum(group, 2 * row + 1).below_centre = -groups.centre * lows;
  }
}

// Calls use<dot, dtype>() and returns true if weights of the dtype are multiplied by tiles in words: quants too large
// for automatic numerics to round x to bytes beside them.
template <class Use>
HWY_INLINE bool for_split_tiles_of(DType dtype, const Use& use) {
  return for_bytes_of(dtype,
                      [&]<class Dot, DType kDType>() {
                        if constexpr (kDType == DType::Q8_0) use.template operator()<Dot, kDType>();
                      }) &&
         dtype == DType::Q8_0;
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_SPLIT_TILES

#endif  // per-target include guard
