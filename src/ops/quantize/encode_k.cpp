// Encoders of the K blocks: Q2_K to Q6_K.
#include <array>
#include <cstring>

#include "ops/quantize/encode_blocks.h"
#include "ops/quantize/encode_super.h"

namespace shunt::encoding {
namespace {

// Evenly spaced signed levels.
template <int kHalf, int kGroupLow>
struct EvenLevels {
  static constexpr std::size_t kElements = 16;
  static constexpr float kScaleLow = kGroupLow;
  static constexpr float kScaleHigh = -kGroupLow - 1;
  static Lanes nearest_level(Lanes value) { return nearest(value, -kHalf, kHalf - 1); }
  static float fit(const float* x, const float* weights) { return fit_scale<kElements, kHalf>(x, weights); }
};

template <int kMax>
using AffineBlock32 = AffineBlock<kMax, 32, 63>;

// The inverse of k_group().
void pack_group(std::uint8_t (&packed)[12], std::size_t g, std::uint32_t scale, std::uint32_t min) {
  const auto put = [&](std::size_t byte, std::uint32_t bits) {
    packed[byte] = static_cast<std::uint8_t>(packed[byte] | bits);
  };
  if (g < 4) {
    put(g, scale);
    put(g + 4, min);
  } else {
    put(g + 4, (scale & 15U) | (min & 15U) << 4);
    put(g - 4, scale >> 4 << 6);
    put(g, min >> 4 << 6);
  }
}

// Packs all but the fifth bits.
template <int kMax, class Block>
void pack(const AffineBlock32<kMax>& fitted, Block& block) {
  block.scale = fitted.scale;
  block.min = fitted.min;
  std::memset(block.group_scales, 0, sizeof(block.group_scales));
  for (std::size_t g = 0; g < 8; ++g)
    pack_group(block.group_scales, g, static_cast<std::uint32_t>(fitted.scales[g]),
               static_cast<std::uint32_t>(fitted.mins[g]));
  for (std::size_t i = 0; i < 128; ++i) {
    const std::size_t first = 64 * (i / 32) + i % 32;
    block.quants[i] = static_cast<std::uint8_t>((fitted.quant(first) & 15U) | (fitted.quant(first + 32) & 15U) << 4);
  }
}

// Packs two bits of each element, four elements to a byte; `quant(i)` is the quant of element i.
template <class Quant>
void pack_pairs(std::uint8_t (&packed)[64], Quant quant) {
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t bits = 0;
    for (std::size_t part = 0; part < 4; ++part)
      bits |= (quant(128 * (i / 32) + i % 32 + 32 * part) & 3U) << (2 * part);
    packed[i] = static_cast<std::uint8_t>(bits);
  }
}

}  // namespace

void encode(const float* x, Q2_KBlock& block) {
  AffineBlock<3, 16, 15> fitted;
  fitted.fit(x);
  block.scale = fitted.scale;
  block.min = fitted.min;
  for (std::size_t g = 0; g < 16; ++g)
    block.group_scales[g] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(fitted.scales[g]) |
                                                      static_cast<std::uint32_t>(fitted.mins[g]) << 4);
  pack_pairs(block.quants, [&](std::size_t i) { return fitted.quant(i); });
}

void encode(const float* x, Q3_KBlock& block) {
  ScaledBlock<EvenLevels<4, -32>> fitted;
  fitted.fit(x);
  block.scale = fitted.scale;
  std::memset(block.group_scales, 0, sizeof(block.group_scales));
  for (std::size_t g = 0; g < 16; ++g) {
    const auto scale = static_cast<std::uint32_t>(fitted.scales[g] + 32.0F);
    const auto put = [&](std::size_t byte, std::uint32_t bits) {
      block.group_scales[byte] = static_cast<std::uint8_t>(block.group_scales[byte] | bits);
    };
    put(g % 8, (scale & 15U) << (g / 8 * 4));
    put(8 + g % 4, scale >> 4 << (g / 4 * 2));
  }
  const auto quant = [&](std::size_t i) { return static_cast<std::uint32_t>(fitted.q[i] + 4.0F); };
  pack_pairs(block.quants, quant);
  for (std::size_t l = 0; l < 32; ++l) {
    std::uint32_t bits = 0;
    for (std::size_t part = 0; part < 8; ++part) bits |= (quant(32 * part + l) >> 2) << part;
    block.high_bits[l] = static_cast<std::uint8_t>(bits);
  }
}

void encode(const float* x, Q4_KBlock& block) {
  AffineBlock32<15> fitted;
  fitted.fit(x);
  pack<15>(fitted, block);
}

void encode(const float* x, Q5_KBlock& block) {
  AffineBlock32<31> fitted;
  fitted.fit(x);
  pack<31>(fitted, block);
  for (std::size_t l = 0; l < 32; ++l) {
    std::uint32_t bits = 0;
    for (std::size_t g = 0; g < 8; ++g) bits |= (fitted.quant(32 * g + l) >> 4) << g;
    block.high_bits[l] = static_cast<std::uint8_t>(bits);
  }
}

void encode(const float* x, Q6_KBlock& block) {
  ScaledBlock<EvenLevels<32, -128>> fitted;
  fitted.fit(x);
  block.scale = fitted.scale;
  for (std::size_t g = 0; g < 16; ++g) block.group_scales[g] = static_cast<std::int8_t>(fitted.scales[g]);
  const auto quant = [&](std::size_t i) { return static_cast<std::uint32_t>(fitted.q[i] + 32.0F); };
  for (std::size_t i = 0; i < 128; ++i) {
    const std::size_t first = 128 * (i / 64) + i % 64;
    block.low_bits[i] = static_cast<std::uint8_t>((quant(first) & 15U) | (quant(first + 64) & 15U) << 4);
  }
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t bits = 0;
    for (std::size_t part = 0; part < 4; ++part)
      bits |= (quant(128 * (i / 32) + i % 32 + 32 * part) >> 4) << (2 * part);
    block.high_bits[i] = static_cast<std::uint8_t>(bits);
  }
}

}  // namespace shunt::encoding
