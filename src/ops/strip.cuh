// Decodes weights in the layout `strips` (ops/strips.h) for tensor cores.
//
// Strip<dtype> is what thread 4 g + t of a warp has of a chunk of 8 rows: its words of row g and the scales of that
// row. Of 16 columns, a step, it has columns 4 t to 4 t + 3. A product of 16 columns may take its columns in any order
// if x does the same, so the first two are columns 2 t and 2 t + 1 to the tensor core, and the others 2 t + 8 and
// 2 t + 9 (ops/product.cuh). The numbers of a step come as halves that hold small integers exactly, which are scaled
// after the product:
//   weight = half / kOne * scale(group) * outer() + offset(group), in odd steps half / (kOne * kOddFactor)
// A group has kGroupColumns columns; 0: the halves are the weights. Unsigned integers below 1024 are halves as they
// are, as multiples of 2^-24, so nibbles need not be moved: those of odd steps stay 16 times as large.
#pragma once

#include "ops/product.cuh"
#include "ops/weight.cuh"

namespace shunt {

struct StepHalves {
  std::uint32_t low;   // columns 4 t and 4 t + 1
  std::uint32_t high;  // columns 4 t + 2 and 4 t + 3
};

struct alignas(8) TwoWords {
  std::uint32_t words[2];
};

template <std::uint32_t columns, std::uint32_t bytes, std::uint32_t group_columns>
struct StripTraits {
  static constexpr std::uint32_t kColumns = columns;
  static constexpr std::uint32_t kBytes = bytes;
  static constexpr std::uint32_t kGroupColumns = group_columns;
  static constexpr std::uint32_t kOddFactor = 1;
  static constexpr float kOne = 1.0F;
  static constexpr bool kHasOuter = false;    // outer() is not 1
  static constexpr bool kHasOffsets = false;  // then minima() has those of all groups, for a product with sums of x
  SHUNT_FUNCTION float outer() const { return 1.0F; }
  SHUNT_FUNCTION float offset(std::uint32_t) const { return 0.0F; }
};

// Of types whose integers are unsigned halves as they are.
inline constexpr float kHalfOne = 0x1p-24F;
inline constexpr float kPerHalfOne = 0x1p24F;

// 1024 as a pair of halves. Their last bits count ones, so a pair of integers below 1024 may be put there.
inline constexpr std::uint32_t kHalves1024 = 0x64006400U;
// Returns the integers of such a pair, less `bias`, as halves.
template <std::uint32_t bias>
SHUNT_FUNCTION std::uint32_t less_bias(std::uint32_t integers) {
  return add_halves(integers, 0xE400E400U + bias * 0x00010001U);  // 0xE400 is -1024
}
// The same for bytes 0 and 1, or 2 and 3, of a word, less 128.
SHUNT_FUNCTION StepHalves bytes_as_halves(std::uint32_t bytes) {
  return {less_bias<128>(byte_permute(bytes, 0x64646464U, 0x4140U)),
          less_bias<128>(byte_permute(bytes, 0x64646464U, 0x4342U))};
}
SHUNT_FUNCTION std::uint32_t rotated(std::uint32_t word, std::uint32_t shift) { return bits_from(word, word, shift); }

// A thread's words of one plane.
template <std::uint32_t count>
struct StripWords {
  static_assert(count == 1 || count == 2 || count == 4 || count == 8);
  std::uint32_t words[count];

  SHUNT_FUNCTION void read(const std::uint8_t* plane, std::uint32_t thread) {
    if constexpr (count == 1) {
      words[0] = reinterpret_cast<const std::uint32_t*>(plane)[thread];
    } else if constexpr (count == 2) {
      const TwoWords two = reinterpret_cast<const TwoWords*>(plane)[thread];
      words[0] = two.words[0];
      words[1] = two.words[1];
    } else {
      SHUNT_UNROLL
      for (std::uint32_t unit = 0; unit < count / 4; ++unit) {
        const FourWords four = reinterpret_cast<const FourWords*>(plane)[unit * 32U + thread];
        SHUNT_UNROLL
        for (std::uint32_t i = 0; i < 4; ++i) words[unit * 4U + i] = four.words[i];
      }
    }
  }
};

// Numbers of four, five or six bits; those of odd steps are 16 times as large. `groups` groups of 32 columns.
template <std::uint32_t groups, std::uint32_t high_bits>
struct NibbleSteps {
  StripWords<groups> low;
  StripWords<high_bits == 0 ? 1 : groups * high_bits / 4> high;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    low.read(chunk, thread);
    if constexpr (high_bits != 0) high.read(chunk + std::uint64_t{groups} * 128U, thread);
  }
  // Returns the integers, put into `into`: zero, or kHalves1024.
  SHUNT_FUNCTION StepHalves integers(std::uint32_t step, std::uint32_t into) const {
    const std::uint32_t group = step / 2U;
    const std::uint32_t mask = step % 2U == 0 ? 0x000F000FU : 0x00F000F0U;
    StepHalves halves{masked_or(low.words[group], mask, into), masked_or(low.words[group] >> 8U, mask, into)};
    if constexpr (high_bits != 0) {
      constexpr std::uint32_t kGroups = 4 / high_bits;  // of a word
      const std::uint32_t word = high.words[group / kGroups];
      const std::uint32_t shift = high_bits * (group % kGroups);
      const std::uint32_t high_mask = (high_bits == 1 ? 0x00100010U : 0x00300030U) << (step % 2U == 0 ? 0U : 4U);
      halves.low = masked_or(rotated(word, shift), high_mask, halves.low);
      halves.high = masked_or(rotated(word, shift + 8U), high_mask, halves.high);
    }
    return halves;
  }
  template <std::uint32_t bias>
  SHUNT_FUNCTION StepHalves biased(std::uint32_t step) const {
    const StepHalves halves = integers(step, kHalves1024);
    if (step % 2U == 0) return {less_bias<bias>(halves.low), less_bias<bias>(halves.high)};
    return {less_bias<bias * 16>(halves.low), less_bias<bias * 16>(halves.high)};
  }
};

// Numbers of two or three bits of 256 columns; those of odd steps are 16 times as large.
template <bool has_third>
struct PairSteps {
  StripWords<4> low;
  StripWords<2> third;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    low.read(chunk, thread);
    if constexpr (has_third) third.read(chunk + 512, thread);
  }
  // Returns the integers, put into `into`: zero, or kHalves1024.
  SHUNT_FUNCTION StepHalves integers(std::uint32_t step, std::uint32_t into) const {
    const std::uint32_t group = step / 2U;
    const std::uint32_t mask = step % 2U == 0 ? 0x00030003U : 0x00300030U;
    const std::uint32_t word = low.words[group / 2U];
    const std::uint32_t shift = group % 2U * 2U;
    StepHalves halves{masked_or(word >> shift, mask, into), masked_or(word >> (shift + 8U), mask, into)};
    if constexpr (has_third) {
      const std::uint32_t high_mask = step % 2U == 0 ? 0x00040004U : 0x00400040U;
      halves.low = masked_or(rotated(third.words[group / 4U], group % 4U), high_mask, halves.low);
      halves.high = masked_or(rotated(third.words[group / 4U], group % 4U + 8U), high_mask, halves.high);
    }
    return halves;
  }
};

// Returns the levels of IQ4_NL and IQ4_XS, 128 larger, as bytes: those of a thread's columns of step `odd` of the two
// steps whose nibbles `word` has.
SHUNT_FUNCTION std::uint32_t levels_of(std::uint32_t word, std::uint32_t odd) {
  const std::uint32_t numbers = word & 0x77777777U;
  const std::uint32_t chosen = (word & 0x88888888U) >> 1U | 0x32103210U;
  const auto looked_up = [](std::uint32_t four, std::uint32_t which) {
    return byte_permute(byte_permute(0x3F2D1801U, 0x766A5D4FU, four), byte_permute(0xA6998D81U, 0xF1D9C5B5U, four),
                        which);
  };
  // Columns 0 and 2 of both steps, and columns 1 and 3.
  return byte_permute(looked_up(numbers, chosen), looked_up(numbers >> 16U, chosen >> 16U),
                      odd == 0 ? 0x6240U : 0x7351U);
}

// The halves of a row's four blocks.
struct FourScales {
  TwoWords pairs;

  SHUNT_FUNCTION void read(const std::uint8_t* headers, std::uint32_t row) {
    pairs = reinterpret_cast<const TwoWords*>(headers)[row];
  }
  SHUNT_FUNCTION float scale(std::uint32_t group) const {
    return group % 2U == 0 ? low_half(pairs.words[group / 2U]) : high_half(pairs.words[group / 2U]);
  }
};
// The same, and their minima.
struct FourMinima {
  FourWords pairs;

  SHUNT_FUNCTION void read(const std::uint8_t* headers, std::uint32_t row) {
    pairs = reinterpret_cast<const FourWords*>(headers)[row];
  }
  SHUNT_FUNCTION float half(std::uint32_t i) const {
    return i % 2U == 0 ? low_half(pairs.words[i / 2U]) : high_half(pairs.words[i / 2U]);
  }
  SHUNT_FUNCTION float scale(std::uint32_t group) const { return half(group); }
  SHUNT_FUNCTION float offset(std::uint32_t group) const { return half(4U + group); }
};

// Six bits of each group, of which even and odd ones are pairs in a word.
struct GroupPairs {
  SHUNT_FUNCTION static std::uint32_t six_bits(std::uint32_t word, std::uint32_t shift) {
    return word >> shift & 0x003F003FU;
  }
  SHUNT_FUNCTION static std::uint32_t of_group(std::uint32_t pair, std::uint32_t group) {
    return pair >> group % 2U * 16U & 0xFFFFU;
  }
};

struct SuperblockHeader {  // Q4_K and Q5_K
  FourWords words;

  SHUNT_FUNCTION void read(const std::uint8_t* headers, std::uint32_t row) {
    words = reinterpret_cast<const FourWords*>(headers)[row];
  }
  SHUNT_FUNCTION std::uint32_t scales(std::uint32_t pair) const {
    return GroupPairs::six_bits(words.words[1U + pair / 2U], pair % 2U * 6U);
  }
  SHUNT_FUNCTION std::uint32_t minima(std::uint32_t pair) const {
    const std::uint32_t high = (pair < 2U ? words.words[1] : words.words[2]) >> (12U + pair % 2U * 2U);
    return (words.words[3] >> 4U * pair & 0x000F000FU) | (high & 0x00030003U) << 4U;
  }
  SHUNT_FUNCTION float scale() const { return low_half(words.words[0]); }
  SHUNT_FUNCTION float min() const { return high_half(words.words[0]); }
};

struct Q2Header {
  FourWords words;
  std::uint32_t halves;

  SHUNT_FUNCTION void read(const std::uint8_t* headers, std::uint32_t row) {
    words = reinterpret_cast<const FourWords*>(headers)[row];
    halves = reinterpret_cast<const std::uint32_t*>(headers + 128)[row];
  }
  SHUNT_FUNCTION static std::uint32_t nibbles(std::uint32_t word, std::uint32_t pair) {
    return word >> pair % 4U * 4U & 0x000F000FU;
  }
  SHUNT_FUNCTION std::uint32_t scales(std::uint32_t pair) const { return nibbles(words.words[pair / 4U], pair); }
  SHUNT_FUNCTION std::uint32_t minima(std::uint32_t pair) const { return nibbles(words.words[2U + pair / 4U], pair); }
  SHUNT_FUNCTION float scale() const { return low_half(halves); }
  SHUNT_FUNCTION float min() const { return high_half(halves); }
};

struct Q3Header {
  std::uint32_t words[3];
  std::uint32_t half;

  SHUNT_FUNCTION void read(const std::uint8_t* headers, std::uint32_t row) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 3; ++i) words[i] = reinterpret_cast<const std::uint32_t*>(headers)[row * 3U + i];
    half = reinterpret_cast<const std::uint16_t*>(headers + 96)[row];
  }
  SHUNT_FUNCTION std::uint32_t scales(std::uint32_t pair) const {  // 32 too large
    const std::uint32_t i = pair % 4U;
    if (i < 3U) return GroupPairs::six_bits(words[i], pair / 4U * 6U);
    return (words[pair / 4U] >> 12U & 0x000F000FU) | (words[2] >> (8U + pair / 4U * 2U) & 0x00300030U);
  }
  SHUNT_FUNCTION float scale() const { return low_half(half); }
};

struct Q6Header {
  FourWords words;
  std::uint32_t half;

  SHUNT_FUNCTION void read(const std::uint8_t* headers, std::uint32_t row) {
    words = reinterpret_cast<const FourWords*>(headers)[row];
    half = reinterpret_cast<const std::uint16_t*>(headers + 128)[row];
  }
  SHUNT_FUNCTION std::uint32_t scales(std::uint32_t pair) const {  // 128 too large
    return words.words[pair % 4U] >> pair / 4U * 8U & 0x00FF00FFU;
  }
  SHUNT_FUNCTION float scale() const { return low_half(half); }
};

struct Iq4XsHeader {
  TwoWords words;

  SHUNT_FUNCTION void read(const std::uint8_t* headers, std::uint32_t row) {
    words = reinterpret_cast<const TwoWords*>(headers)[row];
  }
  SHUNT_FUNCTION std::uint32_t scales(std::uint32_t pair) const {  // 32 too large
    if (pair < 2U) return GroupPairs::six_bits(words.words[1], pair * 6U);
    const std::uint32_t bytes = byte_permute(words.words[0], 0, 0x4342U);
    if (pair == 2U) return bytes & 0x003F003FU;
    return (bytes >> 6U & 0x00030003U) | (words.words[1] >> 10U & 0x003C003CU);
  }
  SHUNT_FUNCTION float scale() const { return low_half(words.words[0] & 0xFFFFU); }
};

struct ExponentHeader {  // MXFP4
  std::uint32_t exponents;

  SHUNT_FUNCTION void read(const std::uint8_t* headers, std::uint32_t row) {
    exponents = reinterpret_cast<const std::uint32_t*>(headers)[row];
  }
  SHUNT_FUNCTION float scale(std::uint32_t group) const {  // mx_scale of blocks.h
    const std::uint32_t exponent = exponents >> 8U * group & 255U;
    return kernel_math::float_of(exponent < 2U ? 0x200000U << exponent : (exponent - 1U) << 23U);
  }
};

// The minima of a chunk for a product with the sums of x over its groups: halves whose products are to be multiplied by
// offset_factor() and have the unit kOne. A thread has groups 2 t and 2 t + 1, and 2 t + 8 and 2 t + 9 if there are 16.
struct OffsetHalves {
  std::uint32_t low;
  std::uint32_t high;
};

template <std::uint32_t of>
struct Strip;
template <std::uint32_t of>
inline constexpr bool kHasStrips = of != dtype::F32;

struct FloatStrip : StripTraits<64, 1024, 0> {
  StripWords<8> numbers;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) { numbers.read(chunk, thread); }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const {
    return {numbers.words[std::uint64_t{2} * i], numbers.words[std::uint64_t{2} * i + 1U]};
  }
  SHUNT_FUNCTION float scale(std::uint32_t) const { return 1.0F; }
};
template <>
struct Strip<dtype::F16> : FloatStrip {};
// Its numbers are pairs of bfloat16.
template <>
struct Strip<dtype::BF16> : FloatStrip {};

template <>
struct Strip<dtype::Q8_0> : StripTraits<128, 1088, 32> {
  StripWords<8> quants;
  FourScales header;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + 1024, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const { return bytes_as_halves(quants.words[i]); }
  SHUNT_FUNCTION float scale(std::uint32_t group) const { return header.scale(group); }
};

// Q4_0 and Q5_0.
template <std::uint32_t bytes, std::uint32_t high_bits, std::uint32_t bias>
struct ScaledNibbles : StripTraits<128, bytes, 32> {
  static constexpr std::uint32_t kOddFactor = 16;
  NibbleSteps<4, high_bits> quants;
  FourScales header;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + bytes - 64, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const { return quants.template biased<bias>(i); }
  SHUNT_FUNCTION float scale(std::uint32_t group) const { return header.scale(group); }
};
template <>
struct Strip<dtype::Q4_0> : ScaledNibbles<576, 0, 8> {};
template <>
struct Strip<dtype::Q5_0> : ScaledNibbles<704, 1, 16> {};

// Q4_1 and Q5_1.
template <std::uint32_t bytes, std::uint32_t high_bits>
struct ShiftedNibbles : StripTraits<128, bytes, 32> {
  static constexpr std::uint32_t kOddFactor = 16;
  static constexpr float kOne = kHalfOne;
  static constexpr bool kHasOffsets = true;
  NibbleSteps<4, high_bits> quants;
  FourMinima header;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + bytes - 128, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const { return quants.integers(i, 0); }
  SHUNT_FUNCTION float scale(std::uint32_t group) const { return header.scale(group); }
  SHUNT_FUNCTION float offset(std::uint32_t group) const { return header.offset(group); }
  // There are four groups; the others' minima are zero.
  SHUNT_FUNCTION OffsetHalves minima(std::uint32_t t) const {
    const std::uint32_t pair = t == 0 ? header.pairs.words[2] : header.pairs.words[3];
    return {t < 2U ? pair : 0U, 0U};
  }
  SHUNT_FUNCTION float offset_factor() const { return kHalfOne; }
};
template <>
struct Strip<dtype::Q4_1> : ShiftedNibbles<640, 0> {};
template <>
struct Strip<dtype::Q5_1> : ShiftedNibbles<768, 1> {};

// Q4_K and Q5_K.
template <std::uint32_t bytes, std::uint32_t high_bits>
struct SuperblockStrip : StripTraits<256, bytes, 32> {
  static constexpr std::uint32_t kOddFactor = 16;
  static constexpr float kOne = kHalfOne;
  static constexpr bool kHasOuter = true;
  static constexpr bool kHasOffsets = true;
  NibbleSteps<8, high_bits> quants;
  SuperblockHeader header;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + bytes - 128, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const { return quants.integers(i, 0); }
  SHUNT_FUNCTION float scale(std::uint32_t group) const {
    const std::uint32_t pair = header.scales(group / 2U);
    return group % 2U == 0 ? low_half(pair) : high_half(pair);
  }
  SHUNT_FUNCTION float outer() const { return header.scale() * kPerHalfOne; }
  SHUNT_FUNCTION float offset(std::uint32_t group) const {
    const std::uint32_t pair = header.minima(group / 2U);
    return header.min() * -kPerHalfOne * (group % 2U == 0 ? low_half(pair) : high_half(pair));
  }
  SHUNT_FUNCTION OffsetHalves minima(std::uint32_t t) const { return {header.minima(t), 0U}; }
  SHUNT_FUNCTION float offset_factor() const { return -header.min(); }
};
template <>
struct Strip<dtype::Q4_K> : SuperblockStrip<1152, 0> {};
template <>
struct Strip<dtype::Q5_K> : SuperblockStrip<1408, 1> {};

template <>
struct Strip<dtype::Q2_K> : StripTraits<256, 672, 16> {
  static constexpr std::uint32_t kOddFactor = 16;
  static constexpr float kOne = kHalfOne;
  static constexpr bool kHasOuter = true;
  static constexpr bool kHasOffsets = true;
  PairSteps<false> quants;
  Q2Header header;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + 512, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const { return quants.integers(i, 0); }
  SHUNT_FUNCTION float scale(std::uint32_t group) const {
    const std::uint32_t pair = header.scales(group / 2U);
    return group % 2U == 0 ? low_half(pair) : high_half(pair);
  }
  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method): what the base has is for types without them
  SHUNT_FUNCTION float outer() const { return header.scale() * kPerHalfOne; }
  SHUNT_FUNCTION float offset(std::uint32_t group) const {
    const std::uint32_t pair = header.minima(group / 2U);
    return header.min() * -kPerHalfOne * (group % 2U == 0 ? low_half(pair) : high_half(pair));
  }
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)
  SHUNT_FUNCTION OffsetHalves minima(std::uint32_t t) const { return {header.minima(t), header.minima(t + 4U)}; }
  SHUNT_FUNCTION float offset_factor() const { return -header.min(); }
};

// Q6_K and IQ4_XS, Q3_K: group scales with a sign.
template <std::uint32_t bytes, std::uint32_t group_columns, std::uint32_t scale_bias, class Header>
struct SignedScales : StripTraits<256, bytes, group_columns> {
  static constexpr bool kHasOuter = true;
  Header header;

  SHUNT_FUNCTION float scale(std::uint32_t group) const {
    const std::uint32_t pair = less_bias<scale_bias>(header.scales(group / 2U) | kHalves1024);
    return group % 2U == 0 ? low_half(pair) : high_half(pair);
  }
  SHUNT_FUNCTION float outer() const { return header.scale(); }
};

template <>
struct Strip<dtype::Q6_K> : SignedScales<1680, 16, 128, Q6Header> {
  static constexpr std::uint32_t kOddFactor = 16;
  NibbleSteps<8, 2> quants;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + 1536, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const { return quants.biased<32>(i); }
};

template <>
struct Strip<dtype::Q3_K> : SignedScales<880, 16, 32, Q3Header> {
  static constexpr std::uint32_t kOddFactor = 16;
  PairSteps<true> quants;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + 768, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const {
    const StepHalves halves = quants.integers(i, kHalves1024);
    if (i % 2U == 0) return {less_bias<4>(halves.low), less_bias<4>(halves.high)};
    return {less_bias<64>(halves.low), less_bias<64>(halves.high)};
  }
};

template <>
struct Strip<dtype::IQ4_XS> : SignedScales<1088, 32, 32, Iq4XsHeader> {
  StripWords<8> quants;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + 1024, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const {
    return bytes_as_halves(levels_of(quants.words[i / 2U], i % 2U));
  }
};

template <>
struct Strip<dtype::IQ4_NL> : StripTraits<128, 576, 32> {
  StripWords<4> quants;
  FourScales header;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + 512, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const {
    return bytes_as_halves(levels_of(quants.words[i / 2U], i % 2U));
  }
  SHUNT_FUNCTION float scale(std::uint32_t group) const { return header.scale(group); }
};

// A 4-bit float with its exponent and fraction in the same places of a half is 2^-14 of its value.
template <>
struct Strip<dtype::MXFP4> : StripTraits<128, 544, 32> {
  static constexpr float kOne = 0x1p-15F;  // the scale is for twice the value
  StripWords<4> quants;
  ExponentHeader header;

  SHUNT_FUNCTION void read(const std::uint8_t* chunk, std::uint32_t thread) {
    quants.read(chunk, thread);
    header.read(chunk + 512, thread / 4U);
  }
  SHUNT_FUNCTION StepHalves step(std::uint32_t i) const {
    const std::uint32_t word = quants.words[i / 2U];
    if (i % 2U == 0)
      return {(word << 9U & 0x0E000E00U) | (word << 12U & 0x80008000U),
              (word << 1U & 0x0E000E00U) | (word << 4U & 0x80008000U)};
    return {(word << 5U & 0x0E000E00U) | (word << 8U & 0x80008000U), (word >> 3U & 0x0E000E00U) | (word & 0x80008000U)};
  }
  SHUNT_FUNCTION float scale(std::uint32_t group) const { return header.scale(group); }
};

// ---- Single elements, for kernels that do not multiply.

// Returns the bits of an element in a plane of a chunk of `columns` columns; ops/strips.h describes it.
SHUNT_FUNCTION std::uint32_t strip_bits(const std::uint8_t* plane, std::uint32_t bits, std::uint32_t lower,
                                        std::uint32_t columns, std::uint32_t row, std::uint32_t column) {
  const std::uint32_t step = column / 16U;
  const std::uint32_t element = column % 4U;
  std::uint32_t word = step / 2U * bits / 4U;
  std::uint32_t bit = lower + 4U * (step % 2U) + 8U * (element / 2U) + 16U * (element % 2U);
  if (bits < 4U) bit += bits * (step / 2U % (4U / bits));
  if (bits == 8U) {
    word = step;
    bit = element * 8U;
  }
  if (bits == 16U) {
    word = step * 2U + element / 2U;
    bit = element % 2U * 16U;
  }
  const std::uint32_t words = columns / 128U * bits;  // of a thread
  const std::uint32_t thread = row * 4U + column % 16U / 4U;
  const std::uint32_t at = (columns * bits > 512U) ? word / 4U * 128U + thread * 4U + word % 4U : thread * words + word;
  return reinterpret_cast<const std::uint32_t*>(plane)[at] >> bit % 32U & ((1U << bits) - 1U);
}

// The chunk that an element of a matrix is in, and its place there.
struct StripPlace {
  const std::uint8_t* chunk;
  std::uint32_t row;
  std::uint32_t column;

  // Returns the bits of the element in a plane at `at`.
  template <std::uint32_t columns>
  SHUNT_FUNCTION std::uint32_t bits(std::uint32_t at, std::uint32_t count, std::uint32_t lower) const {
    return strip_bits(chunk + at, count, lower, columns, row, column) << lower;
  }
  SHUNT_FUNCTION float half(std::uint32_t at) const { return half_at(chunk + at); }
};
template <std::uint32_t of>
SHUNT_FUNCTION StripPlace strip_place(const std::uint8_t* matrix, std::uint32_t columns, std::uint64_t row,
                                      std::uint32_t column) {
  using Form = Strip<of>;
  const std::uint64_t chunk = row / 8U * (columns / Form::kColumns) + column / Form::kColumns;
  return {matrix + chunk * Form::kBytes, static_cast<std::uint32_t>(row % 8U), column % Form::kColumns};
}

// Reads a row's header and returns the number of an element's group: unsigned, as it is stored.
template <class Header>
SHUNT_FUNCTION Header header_at(const StripPlace& place, std::uint32_t at) {
  Header header;
  header.read(place.chunk + at, place.row);
  return header;
}

// Returns get(index), calling it with constants only, so that headers stay in registers.
template <std::uint32_t count, class Get>
SHUNT_FUNCTION auto chosen(std::uint32_t index, Get get) {
  auto found = get(0U);
  SHUNT_UNROLL
  for (std::uint32_t i = 1; i < count; ++i)
    if (i == index) found = get(i);
  return found;
}

// Returns the quant of an element times the scale of its block of 32, where quants are `bias` too large.
SHUNT_FUNCTION float scaled_element(const StripPlace& at, std::uint32_t headers, float quant) {
  return at.half(headers + at.row * 8U + at.column / 32U * 2U) * quant;
}
SHUNT_FUNCTION float shifted_element(const StripPlace& at, std::uint32_t headers, float quant) {
  const FourMinima header = header_at<FourMinima>(at, headers);
  const std::uint32_t group = at.column / 32U;
  return chosen<4>(group, [&](std::uint32_t i) { return header.scale(i); }) * quant +
         chosen<4>(group, [&](std::uint32_t i) { return header.offset(i); });
}
// Of types with `groups` groups in a chunk.
template <class Header, std::uint32_t groups>
SHUNT_FUNCTION float superblock_element(const StripPlace& at, std::uint32_t headers, float quant) {
  const Header header = header_at<Header>(at, headers);
  const std::uint32_t group = at.column / (256U / groups);
  const std::uint32_t scales = chosen<groups / 2>(group / 2U, [&](std::uint32_t i) { return header.scales(i); });
  const std::uint32_t minima = chosen<groups / 2>(group / 2U, [&](std::uint32_t i) { return header.minima(i); });
  return header.scale() * static_cast<float>(GroupPairs::of_group(scales, group)) * quant -
         header.min() * static_cast<float>(GroupPairs::of_group(minima, group));
}
template <class Header, std::uint32_t groups>
SHUNT_FUNCTION float signed_element(const StripPlace& at, std::uint32_t headers, float bias, float quant) {
  const Header header = header_at<Header>(at, headers);
  const std::uint32_t group = at.column / (256U / groups);
  const std::uint32_t scales = chosen<groups / 2>(group / 2U, [&](std::uint32_t i) { return header.scales(i); });
  return header.scale() * (static_cast<float>(GroupPairs::of_group(scales, group)) - bias) * quant;
}

// Returns the element of a matrix in strips, the same as weight_at() of one in rows.
template <std::uint32_t of>
SHUNT_FUNCTION float strip_element(const std::uint8_t* matrix, std::uint32_t columns, std::uint64_t row,
                                   std::uint32_t column) {
  const StripPlace at = strip_place<of>(matrix, columns, row, column);
  constexpr std::uint32_t kColumns = Strip<of>::kColumns;
  const auto quant = [&at](std::uint32_t bits) { return at.bits<kColumns>(0, bits, 0); };
  const auto with = [&at](std::uint32_t low, std::uint32_t plane, std::uint32_t bits, std::uint32_t lower) {
    return static_cast<float>(low | at.bits<kColumns>(plane, bits, lower));
  };
  if constexpr (of == dtype::F16) return widen_f16(quant(16));
  if constexpr (of == dtype::BF16) return widen_bf16(quant(16));
  if constexpr (of == dtype::Q8_0) return scaled_element(at, 1024, static_cast<float>(quant(8)) - 128.0F);
  if constexpr (of == dtype::Q4_0) return scaled_element(at, 512, static_cast<float>(quant(4)) - 8.0F);
  if constexpr (of == dtype::IQ4_NL) return scaled_element(at, 512, codebook_level(quant(4)));
  if constexpr (of == dtype::Q5_0) return scaled_element(at, 640, with(quant(4), 512, 1, 4) - 16.0F);
  if constexpr (of == dtype::Q4_1) return shifted_element(at, 512, static_cast<float>(quant(4)));
  if constexpr (of == dtype::Q5_1) return shifted_element(at, 640, with(quant(4), 512, 1, 4));
  if constexpr (of == dtype::MXFP4)
    return mx_value(quant(4)) * header_at<ExponentHeader>(at, 512).scale(at.column / 32U);
  if constexpr (of == dtype::Q4_K)
    return superblock_element<SuperblockHeader, 8>(at, 1024, static_cast<float>(quant(4)));
  if constexpr (of == dtype::Q5_K) return superblock_element<SuperblockHeader, 8>(at, 1280, with(quant(4), 1024, 1, 4));
  if constexpr (of == dtype::Q2_K) return superblock_element<Q2Header, 16>(at, 512, static_cast<float>(quant(2)));
  if constexpr (of == dtype::Q3_K)
    return signed_element<Q3Header, 16>(at, 768, 32.0F, with(quant(2), 512, 1, 2) - 4.0F);
  if constexpr (of == dtype::Q6_K)
    return signed_element<Q6Header, 16>(at, 1536, 128.0F, with(quant(4), 1024, 2, 4) - 32.0F);
  if constexpr (of == dtype::IQ4_XS) return signed_element<Iq4XsHeader, 8>(at, 1024, 32.0F, codebook_level(quant(4)));
  return 0.0F;
}
SHUNT_FUNCTION float strip_element(std::uint32_t of, const std::uint8_t* matrix, std::uint32_t columns,
                                   std::uint64_t row, std::uint32_t column) {
  switch (of) {
#define SHUNT_STRIP(name) \
  case dtype::name:       \
    return strip_element<dtype::name>(matrix, columns, row, column);
    SHUNT_STRIP(F16)
    SHUNT_STRIP(BF16)
    SHUNT_STRIP(Q8_0)
    SHUNT_STRIP(Q4_0)
    SHUNT_STRIP(Q4_1)
    SHUNT_STRIP(Q5_0)
    SHUNT_STRIP(Q5_1)
    SHUNT_STRIP(Q2_K)
    SHUNT_STRIP(Q3_K)
    SHUNT_STRIP(Q4_K)
    SHUNT_STRIP(Q5_K)
    SHUNT_STRIP(Q6_K)
    SHUNT_STRIP(IQ4_NL)
    SHUNT_STRIP(IQ4_XS)
    SHUNT_STRIP(MXFP4)
#undef SHUNT_STRIP
    default:
      return 0.0F;
  }
}

}  // namespace shunt
