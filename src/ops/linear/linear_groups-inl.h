// Multiplies one token row by weight rows made of groups of 32 elements that share a scale and an offset (Q4_0, Q4_K,
// Q5_K). Included by linear_dot-inl.h, once per instruction set.
//
// Scale and offset are factored out of the sum over a group: scale * sum(q x) + offset * sum(x). An element then costs
// its conversion and one multiply-add. The sums of x are computed once for all weight rows.
#if defined(SHUNT_OPS_MATMUL_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_MATMUL_GROUPS_INL_H_
#undef SHUNT_OPS_MATMUL_GROUPS_INL_H_
#else
#define SHUNT_OPS_MATMUL_GROUPS_INL_H_
#endif

#include "ops/linear/linear_blocking.h"
#include "ops/quantize/blocks_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// sums[g] = the sum of x over group g. REQUIRES: elements is a multiple of kGroupElements.
HWY_INLINE void sum_groups(const float* x, std::size_t elements, float* sums) {
  const BlockTag d;
  for (std::size_t i = 0; i < elements; i += kGroupElements) {
    auto sum = hn::Zero(d);
    for (std::size_t j = 0; j < kGroupElements; j += kBlockLanes) sum = hn::Add(sum, hn::LoadU(d, x + i + j));
    sums[i / kGroupElements] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

// Loads the low nibbles of adjacent bytes as F32, and the high ones times kHighTimes.
inline constexpr float kHighTimes = HWY_TARGET == HWY_AVX3 ? 1 : 16;
HWY_INLINE void load_nibbles(const std::byte* from, BlockVec& low, BlockVec& high) {
  const BlockTag d;
  const auto bytes = load_bytes<std::uint8_t>(d, from);
#if HWY_TARGET == HWY_AVX3
  // The permutation reads four bits of each index and ignores the rest.
  const auto values = hn::Iota(d, 0.0F);
  low = hn::TableLookupLanes(values, hn::Indices512<float>{bytes.raw});
  high = hn::TableLookupLanes(values, hn::Indices512<float>{hn::ShiftRight<4>(bytes).raw});
#else
  const hn::RebindToSigned<BlockTag> di;
  low = hn::ConvertTo(d, hn::And(bytes, hn::Set(di, 0x0F)));
  high = hn::ConvertTo(d, hn::And(bytes, hn::Set(di, 0xF0)));
#endif
}

// Loads the quants of a block as F32: those of an even group, and those of the next odd group divided by kOddFactor.
template <DType kDType>
struct GroupQuants;

template <>
struct GroupQuants<DType::Q4_K> {
  using Block = Q4_KBlock;
  static constexpr float kOddFactor = 1.0F / kHighTimes;
  const std::byte* quants;
  HWY_INLINE explicit GroupQuants(const std::byte* block) : quants(block + offsetof(Q4_KBlock, quants)) {}
  HWY_INLINE void load(std::size_t pair, std::size_t j, BlockVec& even, BlockVec& odd) const {
    load_nibbles(quants + 32 * pair + j, even, odd);
  }
};

template <>
struct GroupQuants<DType::Q5_K> {
  using Block = Q5_KBlock;
  static constexpr float kOddFactor = 1;
  alignas(64) std::uint8_t quants[256];
  HWY_INLINE explicit GroupQuants(const std::byte* block) {
    Loader<DType::Q5_K>::join(block, quants);
    forget_memory(quants);
  }
  HWY_INLINE void load(std::size_t pair, std::size_t j, BlockVec& even, BlockVec& odd) const {
    const BlockTag d;
    even = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + 64 * pair + j));
    odd = hn::ConvertTo(d, load_bytes<std::uint8_t>(d, quants + 64 * pair + 32 + j));
  }
};

// With sixteen lanes Q4_0 is faster with its own loader, which applies the offset for free.
template <DType kDType>
inline constexpr bool kHasGroups =
    kDType == DType::Q4_K || kDType == DType::Q5_K || (kDType == DType::Q4_0 && HWY_TARGET != HWY_AVX3);

// Returns lanes that sum to row * x. `sums` comes from sum_groups().
template <DType kDType>
HWY_INLINE BlockVec dot_groups(const std::byte* row, std::size_t elements, const float* x, const float* sums) {
  using Quants = GroupQuants<kDType>;
  const BlockTag d;
  const hn::CappedTag<float, 8> d8;
  BlockVec even_total = hn::Zero(d);
  BlockVec odd_total = hn::Zero(d);
  auto offset_total = hn::Zero(d8);
  for (std::size_t i = 0; i < elements; i += 256, row += sizeof(typename Quants::Block)) {
    prefetch(row, sizeof(typename Quants::Block));
    const KScales k(row);
    const Quants quants(row);
    for (std::size_t pair = 0; pair < 4; ++pair) {
      BlockVec even_sum = hn::Zero(d);
      BlockVec odd_sum = hn::Zero(d);
      const float* const at = x + i + 64 * pair;
      for (std::size_t j = 0; j < kGroupElements; j += kBlockLanes) {
        BlockVec even;
        BlockVec odd;
        quants.load(pair, j, even, odd);
        even_sum = hn::MulAdd(even, hn::LoadU(d, at + j), even_sum);
        odd_sum = hn::MulAdd(odd, hn::LoadU(d, at + kGroupElements + j), odd_sum);
      }
      even_total = hn::MulAdd(even_sum, hn::Set(d, k.scales[2 * pair]), even_total);
      odd_total = hn::MulAdd(odd_sum, hn::Set(d, k.scales[2 * pair + 1]), odd_total);
    }
    for (std::size_t g = 0; g < 8; g += hn::MaxLanes(d8))
      offset_total =
          hn::MulAdd(hn::Load(d8, k.offsets + g), hn::LoadU(d8, sums + i / kGroupElements + g), offset_total);
  }
  alignas(64) float rest[HWY_MAX(kBlockLanes, 8)] = {};
  hn::Store(offset_total, d8, rest);
  return hn::Add(hn::MulAdd(odd_total, hn::Set(d, Quants::kOddFactor), even_total), hn::Load(d, rest));
}

// Sums q x over one Q4_0 block, without scale and offset, for the low and the high nibbles.
HWY_INLINE void sum_q4_0(const std::byte* block, const float* x, BlockVec& low_sum, BlockVec& high_sum) {
  const BlockTag d;
  low_sum = hn::Zero(d);
  high_sum = hn::Zero(d);
  for (std::size_t j = 0; j < 16; j += kBlockLanes) {
    BlockVec low;
    BlockVec high;
    load_nibbles(block + offsetof(Q4_0Block, quants) + j, low, high);
    low_sum = hn::MulAdd(low, hn::LoadU(d, x + j), low_sum);
    high_sum = hn::MulAdd(high, hn::LoadU(d, x + 16 + j), high_sum);
  }
}

// The offset of a Q4_0 group is -8 scales.
template <>
HWY_INLINE BlockVec dot_groups<DType::Q4_0>(const std::byte* row, std::size_t elements, const float* x,
                                            const float* sums) {
  const BlockTag d;
  const hn::FixedTag<float, 4> d4;
  BlockVec low_total = hn::Zero(d);
  BlockVec high_total = hn::Zero(d);
  auto offset_total = hn::Zero(d4);
  BlockVec low;
  BlockVec high;
  std::size_t i = 0;
  for (; i + 128 <= elements; i += 128, row += 4 * sizeof(Q4_0Block)) {
    prefetch(row, 4 * sizeof(Q4_0Block));
    const FourScales scales(row, sizeof(Q4_0Block));
    for (std::size_t b = 0; b < 4; ++b) {
      sum_q4_0(row + b * sizeof(Q4_0Block), x + i + 32 * b, low, high);
      low_total = hn::MulAdd(low, hn::Set(d, scales.values[b]), low_total);
      high_total = hn::MulAdd(high, hn::Set(d, scales.values[b]), high_total);
    }
    offset_total = hn::MulAdd(hn::Load(d4, scales.values), hn::LoadU(d4, sums + i / kGroupElements), offset_total);
  }
  float rest_offset = 0;
  for (; i < elements; i += 32, row += sizeof(Q4_0Block)) {
    const float scale = f16_to_f32(read_as<std::uint16_t>(row));
    sum_q4_0(row, x + i, low, high);
    low_total = hn::MulAdd(low, hn::Set(d, scale), low_total);
    high_total = hn::MulAdd(high, hn::Set(d, scale), high_total);
    rest_offset += scale * sums[i / kGroupElements];
  }
  alignas(64) float rest[kBlockLanes] = {-8 * (rest_offset + hn::GetLane(hn::SumOfLanes(d4, offset_total)))};
  return hn::Add(hn::MulAdd(high_total, hn::Set(d, 1.0F / kHighTimes), low_total), hn::Load(d, rest));
}

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
