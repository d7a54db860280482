// The products of split_row-inl.h on Arm with dotprod. Included by it, once per instruction set.
//
// A thread unpacks the bytes of a weight row block by block as for tiles (block_bytes-inl.h); compilers keep most of
// them in registers. The centre is subtracted, which makes bytes signed. Products are summed exactly within a group;
// each group's sum becomes F32.
#if defined(SHUNT_OPS_SPLIT_DOTPROD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_SPLIT_DOTPROD_INL_H_
#undef SHUNT_OPS_SPLIT_DOTPROD_INL_H_
#else
#define SHUNT_OPS_SPLIT_DOTPROD_INL_H_
#endif

#include <cstring>

#include "ops/linear/byte_dot-inl.h"
#include "ops/linear/few_tokens-inl.h"
#include "ops/linear/word_blocking.h"
#include "ops/quantize/block_bytes-inl.h"

#undef SHUNT_HAS_SPLIT_DOTPROD
#define SHUNT_HAS_SPLIT_DOTPROD (HWY_TARGET == HWY_NEON && SHUNT_HAS_BYTE_DOT)

#if SHUNT_HAS_SPLIT_DOTPROD
HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Whether weights of a dtype are multiplied by SplitX.
template <DType kDType>
constexpr bool kSplitsX = BlockBytes<kDType>::kElements != 0;

// Calls use<Blocks>() with what reads weights of a dtype.
template <DType kDType, class Use>
HWY_INLINE void for_split_blocks_of(const Use& use) {
  use.template operator()<BlockBytes<kDType>>();
}

// Where a block of SplitX has the high bytes of sixteen elements, and how far from them the low ones are.
constexpr std::size_t split_at(std::size_t element) { return element / 32 * 64 + element % 32; }
inline constexpr std::size_t kSplitLow = 32;

// Sums of integers of x, of their high bytes and of their low ones.
struct SplitSum {
  LaneSums high;
  LaneSums low;
};

// Rounds sixteen elements and writes their bytes.
HWY_INLINE SplitSum split_sixteen(const float* x, BlockVec inverse, std::int8_t* high_bytes, std::int8_t* low_bytes) {
  const BlockTag d;
  const hn::RebindToSigned<BlockTag> di;
  const hn::Rebind<std::int8_t, BlockTag> d8;
  SplitSum sum = {hn::Zero(di), hn::Zero(di)};
  for (std::size_t i = 0; i < 16; i += kBlockLanes) {
    const auto integers = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse));
    const auto low = hn::ShiftRight<24>(hn::ShiftLeft<24>(integers));
    const auto high = hn::ShiftRight<8>(hn::Sub(integers, low));
    hn::StoreU(hn::DemoteTo(d8, high), d8, high_bytes + i);
    hn::StoreU(hn::DemoteTo(d8, low), d8, low_bytes + i);
    sum = {hn::Add(sum.high, high), hn::Add(sum.low, low)};
  }
  return sum;
}

// Rounds 256 elements of a token row. Sums of eight integers are left out, since centres are subtracted from weights.
static HWY_NOINLINE void round_split(const float* x, const SplitX& to, std::size_t row, std::size_t block) {
  const hn::RebindToSigned<BlockTag> di;
  const auto [scale, inverse] = word_scale(x);
  to.scales(row)[block] = scale;
  std::int8_t* const bytes = to.bytes(row, 2 * block);
  float* const sums = to.group_sums(row) + block * SplitX::kGroupSums;
  for (std::size_t i = 0; i < kWordBlock; i += 16) {
    std::int8_t* const at = bytes + split_at(i);
    const SplitSum sum = split_sixteen(x + i, hn::Set(BlockTag(), inverse), at, at + kSplitLow);
    const auto integers = hn::SumOfLanes(di, hn::Add(hn::ShiftLeft<8>(sum.high), sum.low));
    sums[i / 16] = static_cast<float>(hn::GetLane(integers)) * scale;
  }
}

HWY_INLINE LaneSums add_products(LaneSums sums, WeightBytes weight, const std::int8_t* x) {
  const hn::Repartition<std::int8_t, BlockTag> d8;
  const WeightBytes bytes[1] = {weight};
  const LaneSums tokens[1] = {hn::BitCast(hn::RebindToSigned<BlockTag>(), hn::LoadU(d8, x))};
  return FoursDot::add(sums, bytes, tokens);
}

// Adds the products of a group that begins at an element of the block. `x` are the bytes of that block of token rows.
template <class Bytes, std::size_t kTokens>
HWY_INLINE void multiply_split_group(const std::uint8_t* bytes, float scale, std::size_t element,
                                     const std::int8_t* const (&x)[kTokens], BlockVec (&products)[kTokens]) {
  const BlockTag d;
  const hn::RebindToSigned<BlockTag> di;
  const hn::Repartition<std::uint8_t, BlockTag> d8;
  constexpr std::size_t kHalves = Bytes::kGroup / 16;
  WeightBytes weight[kHalves];
  HWY_UNROLL(2)
  for (std::size_t h = 0; h < kHalves; ++h)
    weight[h] = hn::Sub(hn::LoadU(d8, bytes + 16 * h), hn::Set(d8, std::uint8_t{Bytes::kCentre}));
  const BlockVec scales = hn::Set(d, scale);
  HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
    auto sum = hn::Zero(di);
    HWY_UNROLL(2)
    for (std::size_t h = 0; h < kHalves; ++h) sum = add_products(sum, weight[h], x[t] + split_at(element + 16 * h));
    sum = hn::ShiftLeft<8>(sum);
    HWY_UNROLL(2)
    for (std::size_t h = 0; h < kHalves; ++h)
      sum = add_products(sum, weight[h], x[t] + split_at(element + 16 * h) + kSplitLow);
    products[t] = hn::MulAdd(hn::ConvertTo(d, sum), scales, products[t]);
  }
}

// Returns the sums of x over four groups of a weight.
template <std::size_t kGroup>
HWY_INLINE BlockVec sums_of_groups(const float* sums, std::size_t group) {
  const BlockTag d;
  if constexpr (kGroup == 16) return hn::LoadU(d, sums + group);
  const BlockVec first = hn::LoadU(d, sums + 2 * group);
  const BlockVec second = hn::LoadU(d, sums + 2 * group + kBlockLanes);
  return hn::Add(hn::ConcatEven(d, second, first), hn::ConcatOdd(d, second, first));
}

// Adds the products of 256 elements.
template <class Bytes, std::size_t kTokens>
HWY_INLINE void multiply_split_block(const std::byte* from, const SplitX& x, std::size_t row, std::size_t block,
                                     BlockVec (&totals)[kTokens]) {
  const BlockTag d;
  constexpr std::size_t kGroups = Bytes::kElements / Bytes::kGroup;
  alignas(64) float offsets[kWordBlock / 16];
  const std::int8_t* bytes_of_x[kTokens];
  BlockVec products[kTokens];
  HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
    bytes_of_x[t] = x.bytes(row + t, 2 * block);
    products[t] = hn::Zero(d);
  }
  HWY_UNROLL(8)
  for (std::size_t begin = 0; begin < kWordBlock; begin += Bytes::kElements, from += Bytes::kBytes) {
    alignas(64) std::uint8_t bytes[Bytes::kElements];
    alignas(64) float scales[kWordBlock / 16];
    Bytes::read(from, bytes, scales, offsets + begin / Bytes::kGroup);
    HWY_UNROLL(16)
    for (std::size_t g = 0; g < kGroups; ++g)
      multiply_split_group<Bytes>(bytes + g * Bytes::kGroup, scales[g], begin + g * Bytes::kGroup, bytes_of_x,
                                  products);
  }
  HWY_UNROLL(4)
  for (std::size_t t = 0; t < kTokens; ++t)
    totals[t] = hn::MulAdd(products[t], hn::Set(d, x.scales(row + t)[block]), totals[t]);
  if constexpr (Bytes::kCentre == 0) {
    for (std::size_t g = 0; g < kWordBlock / Bytes::kGroup; g += kBlockLanes) {
      const BlockVec four = hn::Load(d, offsets + g);
      HWY_UNROLL(4) for (std::size_t t = 0; t < kTokens; ++t) {
        const float* const sums = x.group_sums(row + t) + block * SplitX::kGroupSums;
        totals[t] = hn::MulAdd(four, sums_of_groups<Bytes::kGroup>(sums, g), totals[t]);
      }
    }
  }
}

// Adds the products of a weight row with kTokens token rows from `row` on.
template <class Bytes, std::size_t kTokens>
HWY_INLINE void multiply_split_row(const std::byte* from, const SplitX& x, std::size_t row, std::size_t k,
                                   BlockVec (&totals)[kTokens]) {
  constexpr std::size_t kAtOnce = kWordBlock / Bytes::kElements * Bytes::kBytes;
  const std::size_t whole = k / kWordBlock;
  for (std::size_t block = 0; block < whole; ++block, from += kAtOnce) {
    prefetch(from, kAtOnce);
    multiply_split_block<Bytes>(from, x, row, block, totals);
  }
  if constexpr (Bytes::kElements != kWordBlock) {
    if (const std::size_t rest = k % kWordBlock; rest != 0) {
      // Blocks of zeros fill up the last 256 elements.
      alignas(64) std::byte blocks[kAtOnce] = {};
      std::memcpy(blocks, from, rest / Bytes::kElements * Bytes::kBytes);
      multiply_split_block<Bytes>(blocks, x, row, whole, totals);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif  // SHUNT_HAS_SPLIT_DOTPROD

#endif  // per-target include guard
