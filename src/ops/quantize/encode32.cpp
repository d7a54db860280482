// Encoders of the 32-element blocks: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. All elements weigh the same.
#include <algorithm>
#include <array>

#include "ops/quantize/encode_blocks.h"
#include "ops/quantize/encode_search.h"

namespace shunt::encoding {
namespace {

constexpr std::size_t kElements = 32;
constexpr std::array<float, kElements> kEqualWeights = [] {
  std::array<float, kElements> weights{};
  weights.fill(1.0F);
  return weights;
}();

// Returns the scale of a symmetric block, and writes its quants, offset by kHalf, to `quants`.
template <int kHalf>
std::uint16_t quantize_symmetric(const float* x, std::array<std::uint8_t, kElements>& quants) {
  const std::uint16_t scale = f16_scale(fit_scale<kElements, kHalf>(x, kEqualWeights.data()));
  const float factor = inverse(f16_to_f32(scale));
  for (std::size_t j = 0; j < kElements; ++j)
    quants[j] = static_cast<std::uint8_t>(nearest(x[j] * factor, -kHalf, kHalf - 1) + kHalf);
  return scale;
}

// Writes scale and minimum to the block.
template <int kMax, class Block>
void quantize_range(const float* x, Block& block, std::array<std::uint8_t, kElements>& quants) {
  const Affine fitted = fit_affine<kMax, kElements, MinSign::any>(x, kEqualWeights.data());
  block.scale = f16_scale(fitted.scale);
  block.min = f32_to_f16(-fitted.min);
  std::array<float, kElements> q;
  const Affine grid{.scale = f16_to_f32(block.scale), .min = -f16_to_f32(block.min)};
  quantize_affine<kMax, kElements>(x, grid, q.data());
  for (std::size_t j = 0; j < kElements; ++j) quants[j] = static_cast<std::uint8_t>(q[j]);
}

// Packs the low four bits of all quants.
void pack_nibbles(const std::array<std::uint8_t, kElements>& quants, std::uint8_t (&packed)[16]) {
  for (std::size_t j = 0; j < 16; ++j)
    packed[j] = static_cast<std::uint8_t>((quants[j] & 15U) | (quants[j + 16] & 15U) << 4);
}

// Packs the fifth bits of all quants.
void pack_high_bits(const std::array<std::uint8_t, kElements>& quants, std::uint8_t (&packed)[4]) {
  for (std::size_t byte = 0; byte < 4; ++byte) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 8; ++j) bits |= (std::uint32_t{quants[8 * byte + j]} >> 4) << j;
    packed[byte] = static_cast<std::uint8_t>(bits);
  }
}

}  // namespace

void encode(const float* x, Q8_0Block& block) {
  Lanes extremes = all(0);
  Lanes zeros = all(0);  // NaN if an element is not finite
  for (std::size_t j = 0; j < 32; j += kLanes) {
    const Lanes value = load(x + j);
    const Lanes magnitude = value < all(0) ? -value : value;
    extremes = extremes > magnitude ? extremes : magnitude;
    zeros += value * 0.0F;
  }
  const float largest = std::max(std::max(extremes[0], extremes[1]), std::max(extremes[2], extremes[3]));
  block.scale = f16_scale(largest / 127.0F + ((zeros[0] + zeros[1]) + (zeros[2] + zeros[3])));
  const float factor = inverse(f16_to_f32(block.scale));
  for (std::size_t j = 0; j < 32; j += kLanes) {
    const Lanes quants = nearest(load(x + j) * factor, -127.0F, 127.0F);
    for (std::size_t lane = 0; lane < kLanes; ++lane) block.quants[j + lane] = static_cast<std::int8_t>(quants[lane]);
  }
}

void encode(const float* x, Q4_0Block& block) {
  std::array<std::uint8_t, kElements> quants;
  block.scale = quantize_symmetric<8>(x, quants);
  pack_nibbles(quants, block.quants);
}

void encode(const float* x, Q5_0Block& block) {
  std::array<std::uint8_t, kElements> quants;
  block.scale = quantize_symmetric<16>(x, quants);
  pack_nibbles(quants, block.quants);
  pack_high_bits(quants, block.high_bits);
}

void encode(const float* x, Q4_1Block& block) {
  std::array<std::uint8_t, kElements> quants;
  quantize_range<15>(x, block, quants);
  pack_nibbles(quants, block.quants);
}

void encode(const float* x, Q5_1Block& block) {
  std::array<std::uint8_t, kElements> quants;
  quantize_range<31>(x, block, quants);
  pack_nibbles(quants, block.quants);
  pack_high_bits(quants, block.high_bits);
}

}  // namespace shunt::encoding
