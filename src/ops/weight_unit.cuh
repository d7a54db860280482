// Decodes 32 neighbouring elements of a quantized weight row at a time; ops/quantize/blocks.h describes the blocks.
//
// A unit is value = scale * number + offset, with one scale and one offset for each half of its elements. Its numbers
// are small integers: WeightUnit::four(i) returns elements 4i to 4i + 3 as bytes, kBias too large. A sum over a unit so
// multiplies integers that floats hold exactly, and takes its scale once.
#pragma once

#include "ops/weight.cuh"

namespace shunt {

inline constexpr std::uint32_t kUnitElements = 32;

// Bytes that begin anywhere, as words. The word that holds the last byte may be read whole.
struct UnalignedBytes {
  const std::uint32_t* words;
  std::uint32_t shift;

  SHUNT_FUNCTION explicit UnalignedBytes(const std::uint8_t* at)
      : words(reinterpret_cast<const std::uint32_t*>(at - (reinterpret_cast<std::uintptr_t>(at) & 3U))),
        shift(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) & 3U) * 8U) {}
  SHUNT_FUNCTION std::uint32_t word(std::uint32_t i) const { return bits_from(words[i], words[i + 1], shift); }
};

// Bytes that begin at a multiple of four.
struct AlignedBytes {
  const std::uint32_t* words;

  SHUNT_FUNCTION explicit AlignedBytes(const std::uint8_t* at) : words(reinterpret_cast<const std::uint32_t*>(at)) {}
  SHUNT_FUNCTION std::uint32_t word(std::uint32_t i) const { return words[i]; }
};

// Eight words that are read at once.
struct EightWords {
  std::uint32_t words[8];

  template <class Bytes>
  SHUNT_FUNCTION void read(const Bytes& bytes) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 8; ++i) words[i] = bytes.word(i);
  }
};

// Four nibbles, or two bits or one of four bytes, moved to the bottom of the bytes.
SHUNT_FUNCTION std::uint32_t nibbles(std::uint32_t word, std::uint32_t shift) { return word >> shift & 0x0F0F0F0FU; }
SHUNT_FUNCTION std::uint32_t pairs(std::uint32_t word, std::uint32_t shift) { return word >> shift & 0x03030303U; }
SHUNT_FUNCTION std::uint32_t ones(std::uint32_t word, std::uint32_t shift) { return word >> shift & 0x01010101U; }

// Four bits as the lowest bits of four bytes.
SHUNT_FUNCTION std::uint32_t spread(std::uint32_t bits) { return (bits & 15U) * 0x00204081U & 0x01010101U; }

// The numbers of types whose byte j holds elements j and j + 16.
struct NibbleQuants {
  std::uint32_t words[4];

  template <class Bytes>
  SHUNT_FUNCTION void read(const Bytes& bytes) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) words[i] = bytes.word(i);
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return nibbles(words[i % 4U], i / 4U * 4U); }
};

// Replaces four numbers below 16 by bytes of a table of four words.
SHUNT_FUNCTION std::uint32_t looked_up(std::uint32_t numbers, const std::uint32_t (&table)[4]) {
  const std::uint32_t packed = numbers | numbers >> 4U;
  const std::uint32_t chosen = (packed & 255U) | (packed >> 8U & 0xFF00U);
  const std::uint32_t low = byte_permute(table[0], table[1], chosen & 0x7777U);
  const std::uint32_t high = byte_permute(table[2], table[3], chosen & 0x7777U);
  const std::uint32_t takes_high = (numbers >> 3U & 0x01010101U) * 255U;
  return (low & ~takes_high) | (high & takes_high);
}

// What the types have in common: `scale`, `offset` and what they are made from.
template <std::uint32_t block_elements, std::uint32_t block_bytes, std::uint32_t bias, bool has_offset, bool has_halves>
struct UnitTraits {
  static constexpr std::uint32_t kBlockElements = block_elements;
  static constexpr std::uint32_t kBlockBytes = block_bytes;
  static constexpr std::uint32_t kBias = bias;
  static constexpr bool kHasOffset = has_offset;
  static constexpr bool kHasHalves = has_halves;  // the halves have a scale each, and not the same
  float scale[2];
  float offset[2];
};

// read(block, unit) takes in unit `unit` of the block at `block`.
template <std::uint32_t of>
struct WeightUnit;

// Turns four bytes into floats, `bias` smaller. 2^23 plus a byte is a float whose lowest bits are the byte.
template <std::uint32_t bias>
SHUNT_FUNCTION FourFloats numbers_of(std::uint32_t bytes) {
  FourFloats four;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i)
    four.values[i] = kernel_math::float_of(byte_permute(bytes, 0x4B000000U, 0x7440U + i)) - (8388608.0F + bias);
  return four;
}

// Returns element i of 16 bytes of a floating dtype.
template <std::uint32_t of>
SHUNT_FUNCTION float float_element(const FourWords& four, std::uint32_t i) {
  if constexpr (of == dtype::F32) return kernel_math::float_of(four.words[i]);
  const std::uint32_t sixteen = four.words[i / 2U] >> i % 2U * 16U & 0xFFFFU;
  return of == dtype::F16 ? widen_f16(sixteen) : widen_bf16(sixteen);
}

template <>
struct WeightUnit<dtype::Q8_0> : UnitTraits<32, 34, 128, false, false> {
  EightWords quants;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t) {
    scale[0] = half_at(block);
    quants.read(UnalignedBytes(block + 2));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return quants.words[i] ^ 0x80808080U; }
};

template <>
struct WeightUnit<dtype::Q4_0> : UnitTraits<32, 18, 8, false, false> {
  NibbleQuants quants;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t) {
    scale[0] = half_at(block);
    quants.read(UnalignedBytes(block + 2));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return quants.four(i); }
};

template <>
struct WeightUnit<dtype::Q4_1> : UnitTraits<32, 20, 0, true, false> {
  NibbleQuants quants;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t) {
    scale[0] = half_at(block);
    offset[0] = half_at(block + 2);
    quants.read(AlignedBytes(block + 4));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return quants.four(i); }
};

template <>
struct WeightUnit<dtype::Q5_0> : UnitTraits<32, 22, 16, false, false> {
  NibbleQuants quants;
  std::uint32_t high;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t) {
    scale[0] = half_at(block);
    high = UnalignedBytes(block + 2).word(0);
    quants.read(UnalignedBytes(block + 6));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return quants.four(i) | spread(high >> 4U * i) << 4U; }
};

template <>
struct WeightUnit<dtype::Q5_1> : UnitTraits<32, 24, 0, true, false> {
  NibbleQuants quants;
  std::uint32_t high;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t) {
    scale[0] = half_at(block);
    offset[0] = half_at(block + 2);
    high = AlignedBytes(block + 4).word(0);
    quants.read(AlignedBytes(block + 8));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return quants.four(i) | spread(high >> 4U * i) << 4U; }
};

template <>
struct WeightUnit<dtype::Q2_K> : UnitTraits<256, 84, 0, true, true> {
  EightWords quants;
  std::uint32_t shift;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t unit) {
    SHUNT_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t both = block[2U * unit + half];
      scale[half] = half_at(block + 80) * static_cast<float>(both & 15U);
      offset[half] = -half_at(block + 82) * static_cast<float>(both >> 4U);
    }
    shift = unit % 4U * 2U;
    quants.read(AlignedBytes(block + 16U + std::uint64_t{unit / 4U} * 32U));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return pairs(quants.words[i], shift); }
};

template <>
struct WeightUnit<dtype::Q3_K> : UnitTraits<256, 110, 4, false, true> {
  EightWords quants;
  EightWords high;
  std::uint32_t unit;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t number) {
    unit = number;
    SHUNT_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t g = 2U * unit + half;
      const std::uint32_t six_bits = (static_cast<std::uint32_t>(block[96U + g % 8U]) >> g / 8U * 4U & 15U) |
                                     (static_cast<std::uint32_t>(block[104U + g % 4U]) >> g / 4U * 2U & 3U) << 4U;
      scale[half] = half_at(block + 108) * (static_cast<float>(six_bits) - 32.0F);
    }
    high.read(UnalignedBytes(block));
    quants.read(UnalignedBytes(block + 32U + std::uint64_t{unit / 4U} * 32U));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const {
    return pairs(quants.words[i], unit % 4U * 2U) | ones(high.words[i], unit) << 2U;
  }
};

// The scales of Q4_K and Q5_K, whose blocks begin with two halves and the 6-bit scales and minima of their units.
template <std::uint32_t block_bytes>
struct SuperblockUnit : UnitTraits<256, block_bytes, 0, true, false> {
  std::uint32_t unit;

  SHUNT_FUNCTION void read_scales(const std::uint8_t* block, std::uint32_t number) {
    unit = number;
    const std::uint8_t* scales = block + 4;
    std::uint32_t six_bits = scales[unit & 3U];
    std::uint32_t min = scales[(unit & 3U) + 4U];
    if (unit < 4U) {
      six_bits &= 63U;
      min &= 63U;
    } else {
      const std::uint32_t both = scales[unit + 4U];
      six_bits = (both & 15U) | (six_bits >> 6U) << 4U;
      min = both >> 4U | (min >> 6U) << 4U;
    }
    this->scale[0] = half_at(block) * static_cast<float>(six_bits);
    this->offset[0] = -half_at(block + 2) * static_cast<float>(min);
  }
};

template <>
struct WeightUnit<dtype::Q4_K> : SuperblockUnit<144> {
  EightWords quants;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t number) {
    read_scales(block, number);
    quants.read(AlignedBytes(block + 16U + std::uint64_t{unit / 2U} * 32U));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return nibbles(quants.words[i], unit % 2U * 4U); }
};

template <>
struct WeightUnit<dtype::Q5_K> : SuperblockUnit<176> {
  EightWords quants;
  EightWords high;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t number) {
    read_scales(block, number);
    high.read(AlignedBytes(block + 16));
    quants.read(AlignedBytes(block + 48U + std::uint64_t{unit / 2U} * 32U));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const {
    return nibbles(quants.words[i], unit % 2U * 4U) | ones(high.words[i], unit) << 4U;
  }
};

template <>
struct WeightUnit<dtype::Q6_K> : UnitTraits<256, 210, 32, false, true> {
  EightWords quants;
  EightWords high;
  std::uint32_t unit;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t number) {
    unit = number;
    SHUNT_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half)
      scale[half] = half_at(block + 208) * static_cast<float>(static_cast<std::int8_t>(block[192U + 2U * unit + half]));
    quants.read(UnalignedBytes(block + std::uint64_t{unit / 4U * 2U + unit % 2U} * 32U));
    high.read(UnalignedBytes(block + 128U + std::uint64_t{unit / 4U} * 32U));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const {
    return nibbles(quants.words[i], unit % 4U / 2U * 4U) | pairs(high.words[i], unit % 4U * 2U) << 4U;
  }
};

// The levels of kCodebook of blocks.h, 128 larger.
SHUNT_FUNCTION std::uint32_t codebook_levels(std::uint32_t numbers) {
  const std::uint32_t table[4] = {0x3F2D1801U, 0x766A5D4FU, 0xA6998D81U, 0xF1D9C5B5U};
  return looked_up(numbers, table);
}

template <>
struct WeightUnit<dtype::IQ4_NL> : UnitTraits<32, 18, 128, false, false> {
  NibbleQuants quants;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t) {
    scale[0] = half_at(block);
    quants.read(UnalignedBytes(block + 2));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return codebook_levels(quants.four(i)); }
};

template <>
struct WeightUnit<dtype::IQ4_XS> : UnitTraits<256, 136, 128, false, false> {
  NibbleQuants quants;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t unit) {
    const std::uint32_t high = block[2] | static_cast<std::uint32_t>(block[3]) << 8U;
    const std::uint32_t six_bits =
        (static_cast<std::uint32_t>(block[4U + unit / 2U]) >> unit % 2U * 4U & 15U) | (high >> 2U * unit & 3U) << 4U;
    scale[0] = half_at(block) * (static_cast<float>(six_bits) - 32.0F);
    quants.read(AlignedBytes(block + 8U + std::uint64_t{unit} * 16U));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const { return codebook_levels(quants.four(i)); }
};

// The numbers are twice a 4-bit float, the scale is half of the block's power of two: mx_scale and kMxValues of
// blocks.h.
template <>
struct WeightUnit<dtype::MXFP4> : UnitTraits<32, 17, 12, false, false> {
  NibbleQuants quants;

  SHUNT_FUNCTION void read(const std::uint8_t* block, std::uint32_t) {
    const std::uint32_t exponent = block[0];
    scale[0] = kernel_math::float_of(exponent < 2U ? 0x200000U << exponent : (exponent - 1U) << 23U);
    quants.read(UnalignedBytes(block + 1));
  }
  SHUNT_FUNCTION std::uint32_t four(std::uint32_t i) const {
    const std::uint32_t table[4] = {0x0F0E0D0CU, 0x18141210U, 0x090A0B0CU, 0x00040608U};
    return looked_up(quants.four(i), table);
  }
};

}  // namespace shunt
