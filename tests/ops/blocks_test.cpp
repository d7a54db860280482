#include "ops/quantize/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace shunt::blocks_tests {
namespace {

constexpr std::uint16_t kOne = 0x3C00;   // F16
constexpr std::uint16_t kHalf = 0x3800;  // F16

template <class Block>
std::vector<float> decoded(DType dtype, const Block& block) {
  // One byte off any alignment: rows need none.
  std::vector<std::byte> bytes(sizeof(Block) + 1);
  std::memcpy(bytes.data() + 1, &block, sizeof(Block));
  std::vector<float> out(info_of(dtype).block_elements);
  decode_row(dtype, bytes.data() + 1, out.size(), out.data());
  return out;
}

// The definition of binary16, in double.
double value_of_f16(std::uint32_t half) {
  const int exponent = static_cast<int>((half >> 10) & 31U);
  const double mantissa = half & 0x3FFU;
  const double sign = (half & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(F16, EveryValueIsExactAndComesBack) {
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(half));
    const double expected = value_of_f16(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << half;
      EXPECT_EQ(f32_to_f16(value), half | 0x200U) << "quiet, with its payload";
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << half;
      ASSERT_EQ(std::signbit(value), (half & 0x8000U) != 0) << half;
      ASSERT_EQ(f32_to_f16(value), half);
    }
  }
}

TEST(F16, RoundsToNearestAndTiesToEven) {
  // For each pair of positive neighbours: just below, at and just above the midpoint.
  for (std::uint32_t half = 0; half < 0x7BFF; ++half) {
    const double low = value_of_f16(half);
    const double high = value_of_f16(half + 1);
    const float middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(f32_to_f16(std::nextafterf(middle, 0)), half);
    ASSERT_EQ(f32_to_f16(middle), half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(f32_to_f16(std::nextafterf(middle, 1e9F)), half + 1);
    ASSERT_EQ(f32_to_f16(-middle), 0x8000U | (half % 2 == 0 ? half : half + 1));
  }
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(1e30F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(BF16, EveryValueComesBackAndTheRestRoundsToEven) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = bf16_to_f32(half);
    if (std::isnan(value)) {
      EXPECT_EQ(f32_to_bf16(value), bits | 0x40U);
    } else {
      ASSERT_EQ(f32_to_bf16(value), half);
    }
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000U)), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7F800001U)), 0x7FC0);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
}

TEST(Blocks, PlainTypes) {
  EXPECT_EQ(decoded(DType::F32, F32Block{1.5F}), std::vector<float>{1.5F});
  EXPECT_EQ(decoded(DType::F16, F16Block{0xC000}), std::vector<float>{-2.0F});
  EXPECT_EQ(decoded(DType::BF16, BF16Block{0x4040}), std::vector<float>{3.0F});
}

TEST(Blocks, EveryFloatingAndQuantizedTypeHasADecoderAndIntegersHaveNone) {
  for (std::size_t i = 0; i < dtypes().size(); ++i)
    EXPECT_EQ(decoder_of(static_cast<DType>(i)) == nullptr, dtypes()[i].kind == DTypeKind::integer) << dtypes()[i].name;
}

TEST(Blocks, Q4_0HoldsElementsJAndJPlus16InOneByte) {
  Q4_0Block block{.scale = kHalf, .quants = {}};
  for (std::size_t j = 0; j < 16; ++j) block.quants[j] = static_cast<std::uint8_t>(j | ((15 - j) << 4));
  const std::vector<float> out = decoded(DType::Q4_0, block);
  for (std::size_t j = 0; j < 16; ++j) {
    EXPECT_EQ(out[j], 0.5F * (static_cast<float>(j) - 8));
    EXPECT_EQ(out[j + 16], 0.5F * (7 - static_cast<float>(j)));
  }
}

TEST(Blocks, Q4_1AddsAMinimum) {
  Q4_1Block block{.scale = kHalf, .min = 0xC000, .quants = {}};  // -2
  for (std::size_t j = 0; j < 16; ++j) block.quants[j] = static_cast<std::uint8_t>(j | ((15 - j) << 4));
  const std::vector<float> out = decoded(DType::Q4_1, block);
  for (std::size_t j = 0; j < 16; ++j) {
    EXPECT_EQ(out[j], 0.5F * static_cast<float>(j) - 2);
    EXPECT_EQ(out[j + 16], 0.5F * (15 - static_cast<float>(j)) - 2);
  }
}

// Element j is j, in five bits: the nibbles of j and j + 16 are equal, and the high bits are set in the upper half.
TEST(Blocks, Q5_0AndQ5_1TakeTheFifthBitOfElementJFromBitJ) {
  Q5_0Block block{.scale = kHalf, .high_bits = {0, 0, 255, 255}, .quants = {}};
  for (std::size_t j = 0; j < 16; ++j) block.quants[j] = static_cast<std::uint8_t>(j | (j << 4));
  Q5_1Block with_min{.scale = kHalf, .min = kOne, .high_bits = {0, 0, 255, 255}, .quants = {}};
  std::memcpy(with_min.quants, block.quants, sizeof(block.quants));
  const std::vector<float> out = decoded(DType::Q5_0, block);
  const std::vector<float> out_with_min = decoded(DType::Q5_1, with_min);
  for (std::size_t j = 0; j < 32; ++j) {
    EXPECT_EQ(out[j], 0.5F * (static_cast<float>(j) - 16));
    EXPECT_EQ(out_with_min[j], 0.5F * static_cast<float>(j) + 1);
  }
  // Each bit belongs to exactly one element.
  for (std::size_t bit = 0; bit < 32; ++bit) {
    Q5_0Block single{.scale = kOne, .high_bits = {}, .quants = {}};
    single.high_bits[bit / 8] = static_cast<std::uint8_t>(1U << (bit % 8));
    const std::vector<float> values = decoded(DType::Q5_0, single);
    for (std::size_t j = 0; j < 32; ++j) EXPECT_EQ(values[j], j == bit ? 0.0F : -16.0F) << bit << " " << j;
  }
}

TEST(Blocks, Q8_0IsScaleTimesSignedByte) {
  Q8_0Block block{.scale = 0xBC00, .quants = {}};  // -1
  block.quants[0] = -128;
  block.quants[1] = 127;
  block.quants[31] = -3;
  const std::vector<float> out = decoded(DType::Q8_0, block);
  EXPECT_EQ(out[0], 128.0F);
  EXPECT_EQ(out[1], -127.0F);
  EXPECT_EQ(out[2], 0.0F);
  EXPECT_EQ(out[31], 3.0F);
}

// Scales 1..8 times 7 and minima 1..8 times 5, with all six bits of the upper groups in use.
constexpr std::uint8_t kGroupScales[12] = {7 | (35 >> 4 << 6),    14 | (42 >> 4 << 6),  21 | (49 >> 4 << 6),
                                           28 | (56 >> 4 << 6),   5 | (25 >> 4 << 6),   10 | (30 >> 4 << 6),
                                           15 | (35 >> 4 << 6),   20 | (40 >> 4 << 6),  3 | ((25 & 15) << 4),
                                           10 | ((30 & 15) << 4), 1 | ((35 & 15) << 4), 8 | ((40 & 15) << 4)};

TEST(Blocks, KGroupsUnpackSixBitScalesAndMinima) {
  for (std::size_t group = 0; group < 8; ++group) {
    EXPECT_EQ(k_group(kGroupScales, group).scale, 7 * (group + 1)) << group;
    EXPECT_EQ(k_group(kGroupScales, group).min, 5 * (group + 1)) << group;
  }
}

TEST(Blocks, Q4_KPairsGroupsInNibbles) {
  Q4_KBlock block{.scale = kHalf, .min = kOne, .group_scales = {}, .quants = {}};
  std::memcpy(block.group_scales, kGroupScales, sizeof(kGroupScales));
  // Element l of group g is (g + l) mod 16.
  for (std::size_t pair = 0; pair < 4; ++pair)
    for (std::size_t l = 0; l < 32; ++l)
      block.quants[32 * pair + l] = static_cast<std::uint8_t>(((2 * pair + l) % 16) | ((2 * pair + 1 + l) % 16 << 4));
  const std::vector<float> out = decoded(DType::Q4_K, block);
  for (std::size_t g = 0; g < 8; ++g)
    for (std::size_t l = 0; l < 32; ++l)
      EXPECT_EQ(out[32 * g + l],
                0.5F * static_cast<float>(7 * (g + 1) * ((g + l) % 16)) - static_cast<float>(5 * (g + 1)))
          << g << " " << l;
}

TEST(Blocks, Q5_KTakesTheFifthBitOfGroupGFromBitG) {
  Q5_KBlock block{.scale = kHalf, .min = kOne, .group_scales = {}, .high_bits = {}, .quants = {}};
  std::memcpy(block.group_scales, kGroupScales, sizeof(kGroupScales));
  const auto quant = [](std::size_t g, std::size_t l) { return (5 * g + l) % 32; };
  for (std::size_t g = 0; g < 8; ++g)
    for (std::size_t l = 0; l < 32; ++l) {
      const auto merge = [](std::uint8_t& byte, std::size_t bits) { byte = static_cast<std::uint8_t>(byte | bits); };
      merge(block.quants[32 * (g / 2) + l], quant(g, l) % 16 << (g % 2 * 4));
      merge(block.high_bits[l], quant(g, l) / 16 << g);
    }
  const std::vector<float> out = decoded(DType::Q5_K, block);
  for (std::size_t g = 0; g < 8; ++g)
    for (std::size_t l = 0; l < 32; ++l)
      EXPECT_EQ(out[32 * g + l], 0.5F * static_cast<float>(7 * (g + 1) * quant(g, l)) - static_cast<float>(5 * (g + 1)))
          << g << " " << l;
}

TEST(Blocks, Q6_KJoinsNibblesAndPairsOfHighBits) {
  Q6_KBlock block{.low_bits = {}, .high_bits = {}, .group_scales = {}, .scale = kHalf};
  for (std::size_t g = 0; g < 16; ++g) block.group_scales[g] = static_cast<std::int8_t>(17 * static_cast<int>(g) - 128);
  // Written from the layout as elements l, l + 32, l + 64, l + 96 of a half, not from the decoder's formula.
  const auto quant = [](std::size_t i) { return (3 * i + i / 64) % 64; };
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t l = 0; l < 32; ++l) {
      const std::size_t base = 128 * half + l;
      const std::size_t q[4] = {quant(base), quant(base + 32), quant(base + 64), quant(base + 96)};
      block.low_bits[64 * half + l] = static_cast<std::uint8_t>((q[0] & 15) | ((q[2] & 15) << 4));
      block.low_bits[64 * half + 32 + l] = static_cast<std::uint8_t>((q[1] & 15) | ((q[3] & 15) << 4));
      block.high_bits[32 * half + l] =
          static_cast<std::uint8_t>((q[0] >> 4) | (q[1] >> 4 << 2) | (q[2] >> 4 << 4) | (q[3] >> 4 << 6));
    }
  const std::vector<float> out = decoded(DType::Q6_K, block);
  for (std::size_t i = 0; i < 256; ++i) {
    const int group_scale = 17 * static_cast<int>(i / 16) - 128;
    EXPECT_EQ(out[i], 0.5F * static_cast<float>(group_scale * (static_cast<int>(quant(i)) - 32))) << i;
  }
}

// Written from the layout as elements l, l + 32, l + 64, l + 96 of a half, not from the decoder's formula.
template <class Quant>
void pack_pairs(std::uint8_t (&quants)[64], Quant quant) {
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t l = 0; l < 32; ++l) {
      const std::size_t base = 128 * half + l;
      quants[32 * half + l] = static_cast<std::uint8_t>((quant(base) & 3) | ((quant(base + 32) & 3) << 2) |
                                                        ((quant(base + 64) & 3) << 4) | ((quant(base + 96) & 3) << 6));
    }
}

TEST(Blocks, Q2_KHasFourBitsOfScaleAndMinimumForEachGroup) {
  Q2_KBlock block{.group_scales = {}, .quants = {}, .scale = kHalf, .min = kOne};
  for (std::size_t g = 0; g < 16; ++g) block.group_scales[g] = static_cast<std::uint8_t>(g | ((15 - g) << 4));
  const auto quant = [](std::size_t i) { return (3 * i + i / 64) % 4; };
  pack_pairs(block.quants, quant);
  const std::vector<float> out = decoded(DType::Q2_K, block);
  for (std::size_t i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], 0.5F * static_cast<float>(i / 16 * quant(i)) - static_cast<float>(15 - i / 16)) << i;
}

TEST(Blocks, Q3_KHasSixBitScalesAndAThirdBitForEachGroupOf32) {
  Q3_KBlock block{.high_bits = {}, .quants = {}, .group_scales = {}, .scale = kHalf};
  const auto merge = [](std::uint8_t& byte, std::size_t bits) { byte = static_cast<std::uint8_t>(byte | bits); };
  const auto scale = [](std::size_t g) { return 4 * g + g / 4; };
  // Four scales at a time: the lower, then the upper nibbles of bytes 0-3 and 4-7, then bit pairs of bytes 8-11.
  for (std::size_t g = 0; g < 16; ++g) {
    merge(block.group_scales[g < 8 ? g : g - 8], g < 8 ? scale(g) % 16 : scale(g) % 16 << 4);
    merge(block.group_scales[8 + g % 4], scale(g) / 16 << (2 * (g / 4)));
  }
  const auto quant = [](std::size_t i) { return (5 * i + i / 32) % 8; };
  pack_pairs(block.quants, quant);
  for (std::size_t i = 0; i < 256; ++i) merge(block.high_bits[i % 32], quant(i) / 4 << (i / 32));
  const std::vector<float> out = decoded(DType::Q3_K, block);
  for (std::size_t i = 0; i < 256; ++i) {
    const int group_scale = static_cast<int>(scale(i / 16)) - 32;
    EXPECT_EQ(out[i], 0.5F * static_cast<float>(group_scale * (static_cast<int>(quant(i)) - 4))) << i;
  }
}

TEST(Blocks, IQ4_NLLooksItsLevelsUp) {
  IQ4_NLBlock block{.scale = kHalf, .quants = {}};
  for (std::size_t j = 0; j < 16; ++j) block.quants[j] = static_cast<std::uint8_t>(j | ((15 - j) << 4));
  const std::vector<float> out = decoded(DType::IQ4_NL, block);
  for (std::size_t j = 0; j < 16; ++j) {
    EXPECT_EQ(out[j], 0.5F * static_cast<float>(kCodebook[j]));
    EXPECT_EQ(out[j + 16], 0.5F * static_cast<float>(kCodebook[15 - j]));
  }
}

TEST(Blocks, IQ4_XSHasSixBitScales) {
  IQ4_XSBlock block{.scale = kHalf, .scales_high = 0, .scales_low = {}, .quants = {}};
  const auto scale = [](std::size_t g) { return 9 * g; };
  for (std::size_t g = 0; g < 8; ++g) {
    block.scales_low[g / 2] = static_cast<std::uint8_t>(block.scales_low[g / 2] | scale(g) % 16 << (g % 2 * 4));
    block.scales_high = static_cast<std::uint16_t>(block.scales_high | scale(g) / 16 << (2 * g));
  }
  for (std::size_t i = 0; i < 128; ++i) block.quants[i] = static_cast<std::uint8_t>(i % 16 | (i + i / 16) % 16 << 4);
  const std::vector<float> out = decoded(DType::IQ4_XS, block);
  for (std::size_t g = 0; g < 8; ++g)
    for (std::size_t j = 0; j < 16; ++j) {
      const float factor = 0.5F * static_cast<float>(static_cast<int>(scale(g)) - 32);
      EXPECT_EQ(out[32 * g + j], factor * static_cast<float>(kCodebook[j]));
      EXPECT_EQ(out[32 * g + 16 + j], factor * static_cast<float>(kCodebook[(j + g) % 16]));
    }
}

TEST(Blocks, MXFP4IsAFloatOfFourBitsTimesAPowerOfTwo) {
  constexpr float kValues[8] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (const int exponent : {0, 1, 2, 127, 254, 255}) {
    MXFP4Block block{.exponent = static_cast<std::uint8_t>(exponent), .quants = {}};
    for (std::size_t j = 0; j < 16; ++j) block.quants[j] = static_cast<std::uint8_t>(j | ((15 - j) << 4));
    const std::vector<float> out = decoded(DType::MXFP4, block);
    for (std::size_t j = 0; j < 16; ++j) {
      const float value = std::ldexp(kValues[j % 8], exponent - 127) * (j < 8 ? 1.0F : -1.0F);
      EXPECT_EQ(out[j], value) << exponent << " " << j;
      EXPECT_EQ(out[31 - j], value) << exponent << " " << j;
    }
  }
}

TEST(Blocks, RowsOfSeveralBlocksFollowEachOther) {
  Q8_0Block blocks[3] = {};
  for (std::size_t b = 0; b < 3; ++b) {
    blocks[b].scale = kOne;
    for (std::size_t j = 0; j < 32; ++j) blocks[b].quants[j] = static_cast<std::int8_t>(32 * b + j);
  }
  std::vector<float> out(96);
  decode_row(DType::Q8_0, reinterpret_cast<const std::byte*>(blocks), 96, out.data());
  for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ(out[i], static_cast<float>(i));
}

}  // namespace
}  // namespace shunt::blocks_tests
